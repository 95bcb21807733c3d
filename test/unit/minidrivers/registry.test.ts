import { describe, expect, test } from 'vitest';
import { type DescribedDevice, formatUsbId } from '../../../src/minidrivers/described-device.ts';
import { explainNoMatch, matchDevice, minidriverOf, recognize } from '../../../src/minidrivers/registry.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';

function union(control: number, data: number): Uint8Array {
  return Uint8Array.of(5, 0x24, 6, control, data);
}

/** A function of two interfaces, the control interface first. */
function cdc(subclass: number, control: number, protocol = 0): readonly AltSetting[] {
  const data = control + 1;
  return [
    altSetting(
      control,
      0,
      [0x02, subclass, protocol],
      [endpoint(0x83, 'interrupt', 16)],
      union(control, data),
    ),
    altSetting(data, 0, [0x0a, 0, 0]),
    altSetting(data, 1, [0x0a, 0, 0], [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)]),
  ];
}
const ecm = (control: number): readonly AltSetting[] => cdc(0x06, control);
const ncm = (control: number): readonly AltSetting[] => cdc(0x0d, control);

function device(
  configurations: readonly ConfigurationDescriptor[],
  ids: Partial<DeviceDescriptor> = {},
): DescribedDevice {
  return { descriptor: { ...deviceDescriptor, ...ids }, configurations };
}

describe('which function of a device is driven', () => {
  test('an ECM function', () => {
    expect(matchDevice(device([configuration(ecm(0))]))).toEqual([
      {
        driver: 'cdc_ether',
        networkFunction: 'ethernet',
        configurationValue: 1,
        controlInterface: 0,
        dataInterface: 1,
        quirks: [],
        reason: 'interface 0 is CDC-ECM (02/06/00) with data interface 1 in configuration 1',
      },
    ]);
  });

  test('one among other interfaces, wherever it is', () => {
    const settings = [altSetting(0, 0, [0xff, 0, 0]), altSetting(1, 0, [0xff, 0xff, 0xff]), ...ncm(2)];
    expect(matchDevice(device([configuration(settings)]))).toMatchObject([
      { driver: 'cdc_ncm', controlInterface: 2, dataInterface: 3 },
    ]);
  });

  test('NCM before ECM, also where ECM is in the active configuration', () => {
    const both = device([configuration(ecm(0), { value: 1 }), configuration(ncm(0), { value: 2 })]);
    for (const active of [undefined, 1, 2]) {
      expect(
        matchDevice(both, active).map(({ driver, configurationValue }) => [driver, configurationValue]),
      ).toEqual([
        ['cdc_ncm', 2],
        ['cdc_ether', 1],
      ]);
    }
  });

  test('of two configurations with the same function the active one', () => {
    const twice = device([configuration(ecm(0), { value: 1 }), configuration(ecm(2), { value: 2 })]);
    const values = (active?: number): readonly number[] =>
      matchDevice(twice, active).map(({ configurationValue }) => configurationValue);
    expect([values(), values(1), values(2), values(9)]).toEqual([
      [1, 2],
      [1, 2],
      [2, 1],
      [1, 2],
    ]);
  });

  test('two functions in one configuration: both, in order', () => {
    const matches = matchDevice(device([configuration([...ecm(0), ...ecm(2)])]));
    expect(matches.map(({ controlInterface, dataInterface }) => [controlInterface, dataInterface])).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });

  test.each([
    ['a swapped union', union(1, 0)],
    ['no union', bytesOf('')],
    ['a union that names interfaces that there are not', union(7, 8)],
    ['a union whose data interface is none', union(0, 0)],
  ])('with %s', (_name, extra) => {
    const settings = [
      altSetting(0, 0, [0x02, 0x06, 0], [endpoint(0x83, 'interrupt', 16)], extra),
      ...ecm(0).slice(1),
    ];
    expect(matchDevice(device([configuration(settings)]))).toMatchObject([
      { controlInterface: 0, dataInterface: 1 },
    ]);
  });

  test.each([
    ['a union to a data interface that is not the next one', union(0, 2), 2],
    ['a swapped union to such a one', union(2, 0), 2],
    ['one with several data interfaces: the first', Uint8Array.of(6, 0x24, 6, 0, 2, 1), 2],
  ])('with %s', (_name, extra, dataInterface) => {
    const settings = [
      altSetting(0, 0, [0x02, 0x06, 0], [], extra),
      altSetting(1, 0, [0x0a, 0, 0]),
      altSetting(2, 0, [0x0a, 0, 0]),
    ];
    expect(matchDevice(device([configuration(settings)]))).toMatchObject([{ dataInterface }]);
  });
});

describe('what is not driven', () => {
  test.each([
    ['no configuration', []],
    ['another subclass', [configuration(cdc(0x02, 0, 1))]],
    ['another protocol', [configuration(cdc(0x06, 0, 1))]],
    ['no data interface', [configuration([altSetting(0, 0, [0x02, 0x06, 0], [], union(0, 1))])]],
    [
      'a next interface that is something else',
      [configuration([altSetting(0, 0, [0x02, 0x06, 0]), altSetting(1, 0, [0xff, 0, 0])])],
    ],
    [
      'the class only in a later altsetting',
      [
        configuration([
          altSetting(0, 0, [0xff, 0, 0]),
          altSetting(0, 1, [0x02, 0x06, 0]),
          altSetting(1, 0, [0x0a, 0, 0]),
        ]),
      ],
    ],
    [
      'an interface without altsettings',
      [{ ...configuration([]), interfaces: [{ number: 0, altSettings: [] }] }],
    ],
  ])('%s', (_name, configurations) => {
    const described = device(configurations);
    expect(matchDevice(described)).toEqual([]);
    expect(explainNoMatch(described)).toBe(
      'none of its interfaces is a network function that a minidriver here knows',
    );
  });

  test('MBIM: known, but nothing here drives it', () => {
    const described = device([configuration(cdc(0x0e, 0))]);
    expect(matchDevice(described)).toEqual([]);
    expect(recognize(described)).toMatchObject([{ driver: null, linuxDriver: 'cdc_mbim' }]);
    expect(explainNoMatch(described)).toBe(
      'interface 0 is CDC-MBIM (02/0e/00) with data interface 1 in configuration 1;' +
        ' Linux drives it with cdc_mbim, which is not here',
    );
  });

  test.each([
    [0x1004, 0x61aa, 'lg-vl600'],
    [0x1410, 0xb001, 'qmi_wwan'],
    [0x04dd, 0x8005, 'zaurus'],
  ])('%s:%s, whose ECM is none and left to %s', (vendorId, productId, driver) => {
    const described = device([configuration(ecm(0))], { vendorId, productId });
    expect(matchDevice(described)).toEqual([]);
    expect(explainNoMatch(described)).toContain(`Linux drives it with ${driver}`);
  });
});

describe('devices that Linux drives with something else, and that have a configuration for everybody', () => {
  const vendorSpecific = configuration([
    altSetting(0, 0, [0xff, 0xff, 0], [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)]),
  ]);
  const realtek = (...others: readonly ConfigurationDescriptor[]): DescribedDevice =>
    device([vendorSpecific, ...others], { vendorId: 0x0bda, productId: 0x8153, deviceClass: 0 });

  test('none: named, not driven', () => {
    expect(matchDevice(realtek())).toEqual([]);
    expect(explainNoMatch(realtek())).toBe(
      'interface 0 is a Realtek RTL8152 to RTL8157 (ff/ff/00) in configuration 1;' +
        ' Linux drives it with r8152, which is not here',
    );
  });

  test('ECM in the second configuration: driven there, whichever is active', () => {
    const described = realtek(configuration(ecm(0), { value: 2 }));
    for (const active of [undefined, 1, 2]) {
      expect(matchDevice(described, active)).toMatchObject([{ driver: 'cdc_ether', configurationValue: 2 }]);
    }
    expect(recognize(described).map(({ linuxDriver, selected }) => [linuxDriver, selected])).toEqual([
      ['r8152', true],
      ['cdc_ether', false],
    ]);
    expect(recognize(described, 2).map(({ linuxDriver, selected }) => [linuxDriver, selected])).toEqual([
      ['cdc_ether', true],
      ['r8152', false],
    ]);
  });

  test('NCM and ECM: NCM first', () => {
    const described = realtek(configuration(ncm(0), { value: 2 }), configuration(ecm(0), { value: 3 }));
    expect(matchDevice(described).map(({ configurationValue }) => configurationValue)).toEqual([2, 3]);
  });

  test('the ECM of an AQC111 is its driver’s in Linux, and ours to drive', () => {
    const described = device([vendorSpecific, configuration(ecm(0), { value: 2 })], {
      vendorId: 0x0b95,
      productId: 0x2790,
      deviceClass: 0,
    });
    expect(recognize(described).map(({ driver, linuxDriver }) => [driver, linuxDriver])).toEqual([
      [null, 'aqc111'],
      ['cdc_ether', 'aqc111'],
    ]);
  });
});

describe('modems', () => {
  test.each([
    ['Huawei', 0x12d1, 'ethernet', 'wwan'],
    ['ZTE', 0x19d2, 'ethernet', 'ethernet'],
    ['Telit', 0x1bc7, 'wwan', 'ethernet'],
    ['Ericsson', 0x0bdb, 'ethernet', 'wwan'],
    ['Dell', 0x413c, 'ethernet', 'wwan'],
    ['Toshiba', 0x0930, 'ethernet', 'wwan'],
    ['Linux', 0x1d6b, 'ethernet', 'ethernet'],
  ])('%s: as ECM %s, as NCM %s', (_name, vendorId, asEcm, asNcm) => {
    const of = (settings: readonly AltSetting[]): string | undefined =>
      matchDevice(device([configuration(settings)], { vendorId, productId: 0x1506 }))[0]?.networkFunction;
    expect([of(ecm(0)), of(ncm(0))]).toEqual([asEcm, asNcm]);
  });
});

test('ids are written as lsusb writes them', () => {
  expect(formatUsbId(0x0b, 0xabc)).toBe('000b:0abc');
});

test('each name leads to its minidriver', () => {
  expect([minidriverOf('cdc_ether').name, minidriverOf('cdc_ncm').name]).toEqual(['cdc_ether', 'cdc_ncm']);
});
