import { describe, expect, test } from 'vitest';
import type { DescribedDevice, DescriptorGaps } from '../../../src/minidrivers/described-device.ts';
import { adviseOn } from '../../../src/minidrivers/advice.ts';
import { recognize } from '../../../src/minidrivers/registry.ts';
import { recognizeFunctions } from '../../../src/minidrivers/recognition.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
  EndpointDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';

type Triple = readonly [number, number, number];

const bulkPair: readonly EndpointDescriptor[] = [endpoint(0x81, 'bulk', 512), endpoint(0x01, 'bulk', 512)];
const interrupt = endpoint(0x82, 'interrupt', 16);

function union(control: number, data: number): Uint8Array {
  return Uint8Array.of(5, 0x24, 6, control, data);
}

function device(
  settings: readonly AltSetting[] | readonly ConfigurationDescriptor[],
  ids: Partial<DeviceDescriptor> = {},
  gaps?: Partial<DescriptorGaps>,
): DescribedDevice {
  const configurations = settings.map((part) => ('interfaces' in part ? part : undefined));
  const whole = configurations.every((part) => part !== undefined)
    ? (settings as readonly ConfigurationDescriptor[])
    : [configuration(settings as readonly AltSetting[])];
  return {
    descriptor: { ...deviceDescriptor, deviceClass: 0, ...ids },
    configurations: whole,
    ...(gaps === undefined
      ? {}
      : {
          gaps: {
            endpointCounts: new Map(),
            unlistedInterfaces: new Set(),
            onlyCurrentAltSettings: false,
            kernelDrivers: new Map(),
            ...gaps,
          },
        }),
  };
}

/** Driver, control and data interface of each function. */
function functionsOf(described: DescribedDevice): readonly string[] {
  return recognizeFunctions(described).map(
    ({ linuxDriver, controlInterface, dataInterface }) =>
      `${linuxDriver} ${controlInterface} ${dataInterface}`,
  );
}

/** A control interface with these numbers and a data interface behind it. */
function pair(triple: Triple, control = 0, extra = union(control, control + 1)): readonly AltSetting[] {
  return [
    altSetting(control, 0, triple, [interrupt], extra),
    altSetting(control + 1, 0, [0x0a, 0, 0]),
    altSetting(control + 1, 1, [0x0a, 0, 0], bulkPair),
  ];
}

describe('interfaces decide', () => {
  test.each<[string, Triple, string]>([
    ['NCM', [0x02, 0x0d, 0x00], 'cdc_ncm 0 1'],
    ['ECM', [0x02, 0x06, 0x00], 'cdc_ether 0 1'],
    ['MBIM', [0x02, 0x0e, 0x00], 'cdc_mbim 0 1'],
    ['RNDIS as vendor-specific ACM', [0x02, 0x02, 0xff], 'rndis_host 0 1'],
    ['RNDIS as Android has it', [0xe0, 0x01, 0x03], 'rndis_host 0 1'],
    ['RNDIS as Novatel has it', [0xef, 0x04, 0x01], 'rndis_host 0 1'],
    ['ActiveSync', [0xef, 0x01, 0x01], 'rndis_host 0 1'],
    ['MDLM', [0x02, 0x0a, 0x00], 'cdc_ether 0 1'],
  ])('%s', (_name, triple, expected) => {
    expect(functionsOf(device(pair(triple)))).toEqual([expected]);
  });

  test('EEM is one interface', () => {
    expect(functionsOf(device([altSetting(3, 0, [0x02, 0x0c, 0x07], bulkPair)]))).toEqual(['cdc_eem 3 3']);
  });

  test('one id, two things: 12d1:1506', () => {
    const ids = { vendorId: 0x12d1, productId: 0x1506 };
    const qmi = [
      altSetting(1, 0, [0xff, 0x01, 0x09], [interrupt]),
      altSetting(2, 0, [0xff, 0x01, 0x08], bulkPair),
    ];
    const ncm = [
      altSetting(1, 0, [0xff, 0x02, 0x16], [interrupt]),
      altSetting(1, 1, [0xff, 0x02, 0x16], [interrupt, ...bulkPair]),
      altSetting(2, 0, [0x08, 0x06, 0x50], bulkPair),
    ];
    expect(functionsOf(device(qmi, ids))).toEqual(['qmi_wwan 1 2']);
    expect(functionsOf(device(ncm, ids))).toEqual(['huawei_cdc_ncm 1 1']);
    expect(recognizeFunctions(device(ncm, ids))[0]?.quirks).toEqual(['ndp-to-end', 'prefer-ntb32']);
  });

  test('several functions of one configuration, in the order of the descriptors', () => {
    const settings = [...pair([0x02, 0x0d, 0x00], 6), ...pair([0x02, 0x02, 0xff], 0)];
    expect(functionsOf(device(settings))).toEqual(['cdc_ncm 6 7', 'rndis_host 0 1']);
  });

  test('an NCM function whose control interface can be MBIM is MBIM', () => {
    const settings = [
      altSetting(0, 0, [0x02, 0x0d, 0x00], [interrupt], union(0, 1)),
      altSetting(0, 1, [0x02, 0x0e, 0x00], [interrupt]),
      ...pair([0x02, 0x0d, 0x00]).slice(1),
    ];
    expect(recognizeFunctions(device(settings))).toMatchObject([
      { linuxDriver: 'cdc_mbim', quirks: ['ncm-mbim-combined'], controlInterface: 0, dataInterface: 1 },
    ]);
  });

  test('an NCM function of one interface, if the union says so', () => {
    const settings = [
      altSetting(2, 0, [0x02, 0x0d, 0x00], [interrupt], union(2, 2)),
      altSetting(2, 1, [0x02, 0x0d, 0x00], [interrupt, ...bulkPair]),
    ];
    expect(functionsOf(device(settings))).toEqual(['cdc_ncm 2 2']);
    // RNDIS and ECM need a data interface.
    const rndis = [altSetting(0, 0, [0x02, 0x02, 0xff], bulkPair, union(0, 0))];
    expect(functionsOf(device(rndis))).toEqual([]);
  });

  test('an ACM function with capabilities is a modem, not RNDIS', () => {
    const acm = (capabilities: number): Uint8Array => Uint8Array.of(4, 0x24, 2, capabilities, ...union(0, 1));
    expect(functionsOf(device(pair([0x02, 0x02, 0xff], 0, acm(0))))).toEqual(['rndis_host 0 1']);
    expect(functionsOf(device(pair([0x02, 0x02, 0xff], 0, acm(6))))).toEqual([]);
  });
});

describe('ids make exceptions', () => {
  test.each<[string, number, number, Triple, readonly string[]]>([
    ['mobile broadband', 0x12d1, 0x1573, [0x02, 0x0d, 0x00], []],
    ['a DisplayLink dock', 0x17e9, 0x6000, [0x02, 0x0d, 0x00], ['send-zlp']],
    ['a Telit without addresses', 0x1bc7, 0x0036, [0x02, 0x0d, 0x00], ['no-arp']],
    ['Huawei’s MBIM', 0x12d1, 0x15c1, [0x02, 0x0e, 0x00], ['ndp-to-end']],
    ['a Telit LN920', 0x1bc7, 0x1061, [0x02, 0x0e, 0x00], ['avoid-altsetting-toggle', 'send-zlp']],
    ['any MBIM', 0x1199, 0x9079, [0x02, 0x0e, 0x00], ['send-zlp']],
    ['ZTE’s RNDIS', 0x19d2, 0x1489, [0xe0, 0x01, 0x03], ['fix-destination-mac']],
    ['ZTE’s ECM', 0x19d2, 0x1405, [0x02, 0x06, 0x00], ['fix-destination-mac']],
    ['an old HomePortal', 0x1630, 0x0042, [0x02, 0x02, 0xff], ['poll-status']],
    ['any RNDIS', 0x04e8, 0x6863, [0x02, 0x02, 0xff], []],
  ])('quirks of %s', (_name, vendorId, productId, triple, quirks) => {
    expect(recognizeFunctions(device(pair(triple), { vendorId, productId }))).toMatchObject([{ quirks }]);
  });

  test('an Apple phone: tethering, and a private function; the same numbers elsewhere are ipheth’s', () => {
    const ids = { vendorId: 0x05ac, productId: 0x12a8 };
    const tethering = configuration(
      [
        altSetting(0, 0, [0x06, 0x01, 0x01], bulkPair),
        altSetting(2, 0, [0xff, 0xfd, 0x01]),
        altSetting(2, 1, [0xff, 0xfd, 0x01], bulkPair),
      ],
      { value: 4 },
    );
    const ncm = configuration(
      [
        altSetting(0, 0, [0x06, 0x01, 0x01], bulkPair),
        ...pair([0x02, 0x0d, 0x00], 2),
        ...pair([0x02, 0x0d, 0x00], 4),
      ],
      { value: 5 },
    );
    expect(
      recognizeFunctions(device([tethering, ncm], ids)).map((found) => [
        found.linuxDriver,
        found.configurationValue,
        found.controlInterface,
        found.quirks,
      ]),
    ).toEqual([
      ['ipheth', 4, 2, []],
      ['cdc_ncm', 5, 2, ['send-zlp']],
      ['cdc_ncm', 5, 4, ['send-zlp', 'no-link-interrupt']],
    ]);
  });

  test.each<[string, number, number, Triple]>([
    ['ax88179_178a', 0x0b95, 0x1790, [0xff, 0xff, 0x00]],
    ['asix', 0x0b95, 0x7720, [0xff, 0xff, 0x00]],
    ['asix', 0x05ac, 0x1402, [0xff, 0xff, 0x00]],
    ['smsc95xx', 0x0424, 0xec00, [0xff, 0x00, 0xff]],
    ['smsc75xx', 0x0424, 0x7500, [0xff, 0x00, 0xff]],
    ['lan78xx', 0x0424, 0x7800, [0xff, 0x00, 0xff]],
    ['sr9700', 0x0fe6, 0x9700, [0x00, 0x00, 0x00]],
    ['mcs7830', 0x9710, 0x7830, [0xff, 0x00, 0xff]],
    ['dm9601', 0x0a46, 0x9601, [0x00, 0x00, 0x00]],
    ['aqc111', 0x2eca, 0xc101, [0xff, 0xff, 0x00]],
    ['r8152', 0x0bda, 0x8156, [0xff, 0xff, 0x00]],
  ])('%s for %s:%s', (driver, vendorId, productId, triple) => {
    const settings = [altSetting(0, 0, triple, [...bulkPair, interrupt])];
    expect(functionsOf(device(settings, { vendorId, productId }))).toEqual([`${driver} 0 0`]);
  });

  test('but no id makes a network interface of a disk, nor of one without bulk endpoints', () => {
    const ids = { vendorId: 0x0fe6, productId: 0x9700 };
    expect(functionsOf(device([altSetting(0, 0, [0x08, 0x06, 0x50], bulkPair)], ids))).toEqual([]);
    expect(functionsOf(device([altSetting(0, 0, [0xff, 0, 0], [interrupt])], ids))).toEqual([]);
    expect(
      functionsOf(
        device([altSetting(0, 0, [0xff, 0xff, 0x01], bulkPair)], { vendorId: 0x0b95, productId: 0x1790 }),
      ),
    ).toEqual([]);
  });
});

describe('QMI', () => {
  const quectel = { vendorId: 0x2c7c, productId: 0x0801 };
  const fff: Triple = [0xff, 0xff, 0xff];

  test('two endpoints are the diagnostic port, three are QMI', () => {
    const settings = [altSetting(0, 0, fff, bulkPair), altSetting(4, 0, fff, [interrupt, ...bulkPair])];
    expect(functionsOf(device(settings, quectel))).toEqual(['qmi_wwan 4 4']);
    expect(recognizeFunctions(device(settings, quectel))[0]?.quirks).toEqual(['set-dtr']);
  });

  test('an interface number counts for vendor-specific interfaces only', () => {
    const telit = { vendorId: 0x1bc7, productId: 0x1230 };
    const qmi = altSetting(2, 0, [0xff, 0xff, 0xff], [interrupt, ...bulkPair]);
    expect(functionsOf(device([qmi], telit))).toEqual(['qmi_wwan 2 2']);
    expect(functionsOf(device(pair([0x02, 0x0e, 0x00], 2), telit))).toEqual(['cdc_mbim 2 3']);
    expect(functionsOf(device([altSetting(1, 0, fff, [interrupt, ...bulkPair])], telit))).toEqual([]);
  });

  test('a Quectel EC20 that bears the id of a Gobi', () => {
    const ids = { vendorId: 0x05c6, productId: 0x9215 };
    const vendors = (count: number): readonly AltSetting[] =>
      Array.from({ length: count }, (_, i) => altSetting(i, 0, fff, [interrupt, ...bulkPair]));
    expect(functionsOf(device(vendors(5), ids))).toEqual(['qmi_wwan 4 4']);
    expect(functionsOf(device(vendors(4), ids))).toEqual(['qmi_wwan 0 0']);
  });

  test('DTR also where no table asks for it: USB 2.01 with remote wake-up', () => {
    const sierra = { vendorId: 0x1199, productId: 0x68a2 };
    const qmi = altSetting(8, 0, fff, [interrupt, ...bulkPair]);
    const quirksOf = (usbVersion: number, attributes: number): readonly string[] | undefined =>
      recognizeFunctions(device([configuration([qmi], { attributes })], { ...sierra, usbVersion }))[0]
        ?.quirks;
    expect(quirksOf(0x0201, 0xa0)).toEqual(['set-dtr']);
    expect(quirksOf(0x0200, 0xa0)).toEqual([]);
    expect(quirksOf(0x0201, 0x80)).toEqual([]);
  });

  test('ECM outside, QMI inside', () => {
    const novatel = { vendorId: 0x1410, productId: 0x9010 };
    expect(functionsOf(device(pair([0x02, 0x06, 0x00]), novatel))).toEqual(['qmi_wwan 0 1']);
  });
});

describe('descriptors with gaps', () => {
  test('a data interface that is not listed is taken to be the next one, if more are promised', () => {
    const [control] = pair([0x02, 0x06, 0x00], 0, new Uint8Array(0));
    const cut = configuration(control === undefined ? [] : [control]);
    expect(functionsOf(device([cut], {}, {}))).toEqual([]);
    expect(functionsOf(device([cut], {}, { unlistedInterfaces: new Set([cut]) }))).toEqual(['cdc_ether 0 1']);
  });

  test('endpoints that were counted but not listed', () => {
    const qmi = altSetting(0, 0, [0xff, 0xff, 0xff], []);
    const of = (count: number | undefined): readonly string[] =>
      functionsOf(
        device(
          [qmi],
          { vendorId: 0x1e2d, productId: 0x00b7 },
          { endpointCounts: new Map(count === undefined ? [] : [[qmi, count]]) },
        ),
      );
    expect([of(3), of(2), of(undefined)]).toEqual([['qmi_wwan 0 0'], [], ['qmi_wwan 0 0']]);
  });

  test('what no table has, but a network driver had', () => {
    const unknown = altSetting(3, 0, [0xff, 0xff, 0xff], [interrupt, ...bulkPair]);
    const bound = (driver: string): DescribedDevice =>
      device(
        [unknown],
        { vendorId: 0x2c7c, productId: 0x0700 },
        { kernelDrivers: new Map([[unknown, driver]]) },
      );
    expect(functionsOf(bound('qmi_wwan'))).toEqual(['qmi_wwan 3 3']);
    expect(recognizeFunctions(bound('qmi_wwan'))[0]?.reason).toContain('was bound to qmi_wwan');
    expect(functionsOf(bound('option'))).toEqual([]);
  });
});

describe('what can be done', () => {
  const advise = (described: DescribedDevice): string => adviseOn(described, recognize(described));

  test('a device that is driven', () => {
    expect(advise(device(pair([0x02, 0x0d, 0x00])))).toBe('Queuescope drives it with cdc_ncm.');
  });

  test('one that has another configuration for that', () => {
    const described = device(
      [
        configuration([altSetting(0, 0, [0xff, 0xff, 0x00], bulkPair)]),
        configuration(pair([0x02, 0x06, 0x00]), { value: 2 }),
      ],
      { vendorId: 0x0bda, productId: 0x8152 },
    );
    expect(advise(described)).toBe(
      'Queuescope can drive it with cdc_ether in configuration 2, and switches to that configuration when it takes' +
        " the device. Until it is given back, Linux's r8152 is without it.",
    );
  });

  test.each<[string, readonly AltSetting[], Partial<DeviceDescriptor>, RegExp]>([
    [
      'one that is not driven',
      [altSetting(0, 0, [0xff, 0x00, 0xff], bulkPair)],
      { vendorId: 0x0424, productId: 0x7500 },
      /no driver for what smsc75xx drives.*queuescope observe/,
    ],
    ['a disk', [altSetting(0, 0, [0x08, 0x06, 0x50], bulkPair)], { vendorId: 0x12d1 }, /usb_modeswitch/],
    ['a hub', [altSetting(0, 0, [0x09, 0, 0])], { deviceClass: 0x09 }, /hub/],
    ['a keyboard', [altSetting(0, 0, [0x03, 1, 1])], {}, /no network device/],
    ['serial ports', [altSetting(0, 0, [0xff, 0, 0], bulkPair)], { vendorId: 0x2c7c }, /AT\+QCFG/],
    [
      'what may be QMI',
      [altSetting(3, 0, [0xff, 0xff, 0x50], [interrupt, ...bulkPair])],
      { vendorId: 0x1bc7, productId: 0x9999 },
      /Interface 3 looks like QMI.*echo 1bc7 9999 > .*qmi_wwan/,
    ],
    ['nothing', [], {}, /lsusb -v/],
  ])('%s', (_name, settings, ids, expected) => {
    expect(advise(device(settings, ids))).toMatch(expected);
  });
});
