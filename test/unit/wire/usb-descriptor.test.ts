import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ParseResult } from '../../../src/wire/parse-result.ts';
import {
  configurationTotalLength,
  encodeConfigurationDescriptor,
  encodeDeviceDescriptor,
  parseConfigurationDescriptor,
  parseDeviceDescriptor,
  type AltSetting,
  type ConfigurationDescriptor,
  type DeviceDescriptor,
  type EndpointDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import { bytesOf } from './bytes-of.ts';

function valueOf<T>(result: ParseResult<T>): T {
  if (!result.ok) throw new Error(`${result.problem} at ${result.offset}`);
  return result.value;
}

/** Realtek RTL8153 in a Lenovo dock (lsusb -v), at SuperSpeed. */
const dock = {
  device: bytesOf('12 01 20 03 00 00 00 09 da 0b 53 81 23 31 01 02 06 02'),
  vendorConfiguration: bytesOf(`
    09 02 39 00 01 01 00 a0 0e
    09 04 00 00 03 ff ff 00 00
    07 05 81 02 00 04 00 | 06 30 03 00 00 00
    07 05 02 02 00 04 00 | 06 30 03 00 00 00
    07 05 83 03 02 00 0b | 06 30 00 00 02 00`),
  ecmConfiguration: bytesOf(`
    09 02 62 00 02 02 00 a0 0e
    09 04 00 00 01 02 06 00 05
    05 24 00 10 01 | 05 24 06 00 01 | 0d 24 0f 03 00 00 00 00 ea 05 00 00 00
    07 05 83 03 10 00 0b | 06 30 00 00 10 00
    09 04 01 00 00 0a 00 00 00
    09 04 01 01 02 0a 00 00 04
    07 05 81 02 00 04 00 | 06 30 03 00 00 00
    07 05 02 02 00 04 00 | 06 30 03 00 00 00`),
};

/** Sierra Wireless EM9191 with MBIM (lsusb -v): an association, and an interface number left out. */
const modemConfiguration = bytesOf(`
  09 02 a7 00 04 01 04 a0 fa
  08 0b 00 02 02 0e 00 00
  09 04 00 00 01 02 0e 00 00
  05 24 00 10 01 | 05 24 06 00 01 | 0c 24 1b 00 01 00 10 20 80 00 08 20 | 08 24 1c 00 01 40 dc 05
  07 05 81 03 40 00 09
  09 04 01 00 00 0a 00 02 00
  09 04 01 01 02 0a 00 02 00
  07 05 8e 02 00 02 00
  07 05 0f 02 00 02 00
  09 04 03 00 03 ff 00 00 00
  05 24 00 10 01 | 05 24 01 00 00 | 04 24 02 02 | 05 24 06 00 00
  07 05 83 03 0a 00 09
  07 05 82 02 00 02 00
  07 05 01 02 00 02 00
  09 04 04 00 02 ff ff 30 00
  07 05 84 02 00 02 00
  07 05 02 02 00 02 00`);

const nothing = new Uint8Array(0);

describe('the device descriptor', () => {
  const value: DeviceDescriptor = {
    usbVersion: 0x0320,
    deviceClass: 0,
    deviceSubclass: 0,
    deviceProtocol: 0,
    maxPacketSize0: 9,
    vendorId: 0x0bda,
    productId: 0x8153,
    deviceVersion: 0x3123,
    manufacturerIndex: 1,
    productIndex: 2,
    serialIndex: 6,
    configurationCount: 2,
  };

  test('of a real device', () => {
    expect(parseDeviceDescriptor(dock.device)).toEqual({ ok: true, value });
    expect(encodeDeviceDescriptor(value)).toEqual(dock.device);
  });

  test('with bytes behind it', () => {
    expect(parseDeviceDescriptor(Uint8Array.of(...dock.device, 1, 2, 3))).toEqual({ ok: true, value });
  });

  test.each([
    ['nothing', nothing, 0],
    ['too short', dock.device.subarray(0, 17), 17],
    ['a length that is too short', Uint8Array.of(17, ...dock.device.subarray(1)), 0],
    ['another type', Uint8Array.of(18, 2, ...dock.device.subarray(2)), 1],
  ])('%s is a problem', (_name, bytes, offset) => {
    expect(parseDeviceDescriptor(bytes)).toMatchObject({ ok: false, offset });
  });
});

describe('the configuration of a real device', () => {
  test('RTL8153: endpoints with companions, power in units of 8 mA', () => {
    const configuration = valueOf(parseConfigurationDescriptor(dock.vendorConfiguration));
    expect(configuration).toEqual({
      value: 1,
      nameIndex: 0,
      attributes: 0xa0,
      maxPowerMa: 112,
      associations: [],
      extra: nothing,
      interfaces: [
        {
          number: 0,
          altSettings: [
            {
              interfaceNumber: 0,
              alternateSetting: 0,
              interfaceClass: 255,
              interfaceSubclass: 255,
              interfaceProtocol: 0,
              nameIndex: 0,
              extra: nothing,
              endpoints: [
                {
                  address: 0x81,
                  direction: 'in',
                  type: 'bulk',
                  maxPacketSize: 1024,
                  interval: 0,
                  companion: { maxBurst: 3, attributes: 0, bytesPerInterval: 0 },
                  extra: nothing,
                },
                {
                  address: 0x02,
                  direction: 'out',
                  type: 'bulk',
                  maxPacketSize: 1024,
                  interval: 0,
                  companion: { maxBurst: 3, attributes: 0, bytesPerInterval: 0 },
                  extra: nothing,
                },
                {
                  address: 0x83,
                  direction: 'in',
                  type: 'interrupt',
                  maxPacketSize: 2,
                  interval: 11,
                  companion: { maxBurst: 0, attributes: 0, bytesPerInterval: 2 },
                  extra: nothing,
                },
              ],
            },
          ],
        },
      ],
    });
  });

  test('EM9191: association, altsettings, class descriptors before the endpoints, power in units of 2 mA', () => {
    const configuration = valueOf(parseConfigurationDescriptor(modemConfiguration));
    expect(configuration.maxPowerMa).toBe(500);
    expect(configuration.associations).toEqual([
      {
        firstInterface: 0,
        interfaceCount: 2,
        functionClass: 2,
        functionSubclass: 14,
        functionProtocol: 0,
        nameIndex: 0,
      },
    ]);
    const summary = configuration.interfaces.map(({ number, altSettings }) => [
      number,
      ...altSettings.map((altSetting) => [
        altSetting.alternateSetting,
        altSetting.extra.length,
        ...altSetting.endpoints.map(
          (endpoint) => `${endpoint.type} ${endpoint.direction} ${endpoint.maxPacketSize}`,
        ),
      ]),
    ]);
    expect(summary).toEqual([
      [0, [0, 30, 'interrupt in 64']],
      [1, [0, 0], [1, 0, 'bulk in 512', 'bulk out 512']],
      [3, [0, 19, 'interrupt in 10', 'bulk in 512', 'bulk out 512']],
      [4, [0, 0, 'bulk in 512', 'bulk out 512']],
    ]);
  });

  test.each([
    ['RTL8153, vendor mode', dock.vendorConfiguration, true],
    ['RTL8153, ECM', dock.ecmConfiguration, true],
    ['EM9191', modemConfiguration, false],
  ])('%s: encoding gives the same bytes', (_name, bytes, superSpeed) => {
    expect(configurationTotalLength(bytes)).toBe(bytes.length);
    const configuration = valueOf(parseConfigurationDescriptor(bytes));
    expect(encodeConfigurationDescriptor(configuration, { superSpeed })).toEqual(bytes);
  });

  test('the speed may be said, where there is nothing to see it by', () => {
    const bytes = bytesOf('09 02 12 00 01 01 00 80 3f | 09 04 00 00 00 ff 00 00 00');
    expect(valueOf(parseConfigurationDescriptor(bytes)).maxPowerMa).toBe(126);
    expect(valueOf(parseConfigurationDescriptor(bytes, { superSpeed: true })).maxPowerMa).toBe(504);
  });
});

/** A configuration around `body`, with the right total length. */
function configurationOf(body: string, interfaceCount: number): Uint8Array {
  const bodyBytes = bytesOf(body);
  const length = 9 + bodyBytes.length;
  return Uint8Array.of(9, 2, length & 0xff, length >> 8, interfaceCount, 1, 0, 0x80, 50, ...bodyBytes);
}

const alt00 = '09 04 00 00 02 0a 00 00 00';
const alt01 = '09 04 00 01 02 0a 00 00 00';
const alt10 = '09 04 01 00 02 0a 00 00 00';
const bulkIn = '07 05 81 02 00 02 00';
const bulkOut = '07 05 02 02 00 02 00';

describe('what real devices do', () => {
  const parsed = (body: string, interfaceCount: number): ConfigurationDescriptor =>
    valueOf(parseConfigurationDescriptor(configurationOf(body, interfaceCount)));
  const addresses = (altSetting: AltSetting | undefined): readonly number[] =>
    (altSetting?.endpoints ?? []).map((endpoint) => endpoint.address);

  test('class descriptors behind an endpoint belong to the endpoint, a companion too', () => {
    const { interfaces } = parsed(`${alt00} ${bulkIn} 05 24 06 00 01 06 30 02 00 00 00 ${bulkOut}`, 1);
    const endpoint = interfaces[0]?.altSettings[0]?.endpoints[0];
    expect(endpoint?.extra).toEqual(bytesOf('05 24 06 00 01'));
    expect(endpoint?.companion).toEqual({ maxBurst: 2, attributes: 0, bytesPerInterval: 0 });
  });

  test('a second companion, and one without an endpoint, are kept as unknown', () => {
    const companion = '06 30 02 00 00 00';
    const { interfaces } = parsed(`${alt00} ${companion} ${bulkIn} ${companion} ${companion} ${bulkOut}`, 1);
    const altSetting = interfaces[0]?.altSettings[0];
    expect(altSetting?.extra).toEqual(bytesOf(companion));
    expect(altSetting?.endpoints[0]?.extra).toEqual(bytesOf(companion));
  });

  test('a companion behind an interface does not belong to the endpoint before', () => {
    const companion = '06 30 02 00 00 00';
    const { interfaces } = parsed(`${alt00} ${bulkIn} ${alt01} ${companion} ${bulkOut}`, 1);
    const [first, second] = interfaces[0]?.altSettings ?? [];
    expect(first?.endpoints[0]?.companion).toBeUndefined();
    expect(second?.extra).toEqual(bytesOf(companion));
  });

  test('interfaces out of order, their altsettings apart', () => {
    const { interfaces } = parsed(
      `${alt10} ${bulkIn} ${alt00} ${bulkOut} ${alt01} 09 04 01 01 00 0a 00 00 00`,
      2,
    );
    expect(
      interfaces.map(({ number, altSettings }) => [number, altSettings.map((one) => one.alternateSetting)]),
    ).toEqual([
      [1, [0, 1]],
      [0, [0, 1]],
    ]);
  });

  test('an altsetting that came before is ignored with all that belongs to it', () => {
    const { interfaces, extra } = parsed(`${alt00} ${bulkIn} ${alt00} 05 24 00 10 01 ${bulkOut} ${alt10}`, 2);
    expect(addresses(interfaces[0]?.altSettings[0])).toEqual([0x81]);
    expect(interfaces[0]?.altSettings[0]?.endpoints[0]?.extra).toEqual(nothing);
    expect(extra).toEqual(nothing);
    expect(interfaces).toHaveLength(2);
  });

  test('an association does not end the descriptors around it', () => {
    const association = '08 0b 00 02 02 0d 00 00';
    const { associations, extra, interfaces } = parsed(
      `05 24 00 10 01 ${association} 03 09 00 ${alt00} ${bulkIn} ${bulkOut}`,
      1,
    );
    expect(associations).toHaveLength(1);
    expect(extra).toEqual(bytesOf('05 24 00 10 01 03 09 00'));
    expect(interfaces).toHaveLength(1);
  });

  test('descriptors that are too short for their type, and endpoint 0, are kept as unknown', () => {
    const odd = '08 04 05 00 00 0a 00 00 | 06 05 81 02 00 02 | 07 0b 00 02 02 0d 00 | 07 05 80 02 00 02 00';
    const { interfaces, associations } = parsed(`${alt00} ${odd} ${bulkIn}`, 1);
    expect(interfaces).toHaveLength(1);
    expect(associations).toHaveLength(0);
    expect(addresses(interfaces[0]?.altSettings[0])).toEqual([0x81]);
    expect(interfaces[0]?.altSettings[0]?.extra).toEqual(bytesOf(odd.replaceAll('|', '')));
  });

  test('an endpoint before any interface is kept as unknown', () => {
    expect(parsed(`${bulkIn} ${alt00}`, 1).extra).toEqual(bytesOf(bulkIn));
  });

  test('longer standard descriptors are read as far as they are standard', () => {
    const { interfaces } = parsed(`0b 04 00 00 01 01 02 00 00 aa bb | 09 05 03 09 20 01 01 00 00`, 1);
    expect(interfaces[0]?.altSettings[0]?.endpoints).toEqual([
      {
        address: 3,
        direction: 'out',
        type: 'isochronous',
        maxPacketSize: 0x120,
        usageBits: 8,
        interval: 1,
        extra: nothing,
      },
    ]);
  });

  test('a high-bandwidth endpoint keeps its packet size apart from its transactions', () => {
    const { interfaces } = parsed(`${alt00} 07 05 81 03 00 14 01`, 1);
    expect(interfaces[0]?.altSettings[0]?.endpoints[0]).toMatchObject({
      maxPacketSize: 1024,
      additionalTransactions: 2,
    });
  });

  test('counts that promise too much, if the total length is right', () => {
    expect(parsed(`${alt00} ${bulkIn}`, 3).interfaces).toHaveLength(1);
  });

  test('bytes behind the total length', () => {
    const bytes = Uint8Array.of(...modemConfiguration, 9, 4, 9, 0, 0, 0, 0, 0, 0);
    expect(parseConfigurationDescriptor(bytes)).toEqual(parseConfigurationDescriptor(modemConfiguration));
  });

  test('a total length beyond the bytes, if everything that was promised is there', () => {
    const bytes = modemConfiguration.slice();
    bytes[2] = 0xff;
    expect(parseConfigurationDescriptor(bytes)).toEqual(parseConfigurationDescriptor(modemConfiguration));
  });

  test('an impossible length at the end, if everything that was promised is there', () => {
    const { interfaces } = parsed(`${alt00} ${bulkIn} ${bulkOut} 00 24 00`, 1);
    expect(addresses(interfaces[0]?.altSettings[0])).toEqual([0x81, 0x02]);
  });
});

describe('is a problem', () => {
  test.each([
    ['nothing', nothing, 0],
    ['too short', modemConfiguration.subarray(0, 8), 8],
    ['another type', Uint8Array.of(9, 1, ...modemConfiguration.subarray(2)), 1],
    ['a header of 8 bytes', Uint8Array.of(8, ...modemConfiguration.subarray(1)), 0],
    ['a header that is longer than everything', Uint8Array.of(200, ...modemConfiguration.subarray(1)), 0],
    ['a total length of 8 bytes', Uint8Array.of(9, 2, 8, 0, ...modemConfiguration.subarray(4)), 2],
    ['cut off between descriptors', modemConfiguration.subarray(0, 153), 153],
    ['cut off in a descriptor', modemConfiguration.subarray(0, 165), 165],
    ['a descriptor of length 0', configurationOf(`${alt00} ${bulkIn} 00 05 02 02 00 02 00`, 1), 25],
    ['a descriptor of length 1', configurationOf(`${alt00} ${bulkIn} 01 05`, 1), 25],
    [
      'a descriptor that runs past the end',
      configurationOf(`${alt00} ${bulkIn} 08 05 02 02 00 02 00`, 1),
      25,
    ],
  ])('%s', (_name, bytes, offset) => {
    expect(parseConfigurationDescriptor(bytes)).toMatchObject({ ok: false, offset });
  });

  test('and every prefix of a configuration is one, up to its last endpoint', () => {
    for (let length = 0; length < modemConfiguration.length; length++) {
      expect(parseConfigurationDescriptor(modemConfiguration.subarray(0, length)).ok, `${length} bytes`).toBe(
        false,
      );
    }
  });
});

const uint8 = fc.nat(255);
const uint16 = fc.nat(0xffff);

/** Descriptors of types that the parser does not know. */
const arbitraryExtra = fc
  .array(
    fc
      .tuple(fc.constantFrom(0x24, 0x25, 0x21, 0x41, 0xff), fc.uint8Array({ maxLength: 12 }))
      .map(([type, body]) => [body.length + 2, type, ...body]),
    { maxLength: 3 },
  )
  .map((descriptors) => Uint8Array.from(descriptors.flat()));

function arbitraryEndpoint(superSpeed: boolean): fc.Arbitrary<EndpointDescriptor> {
  return fc
    .record({
      number: fc.integer({ min: 1, max: 15 }),
      direction: fc.constantFrom('in' as const, 'out' as const),
      type: fc.constantFrom(
        'control' as const,
        'isochronous' as const,
        'bulk' as const,
        'interrupt' as const,
      ),
      maxPacketSize: fc.nat(0x7ff),
      additionalTransactions: fc.nat(3),
      usage: fc.nat(15),
      interval: uint8,
      companion: fc.record({ maxBurst: uint8, attributes: uint8, bytesPerInterval: uint16 }),
      extra: arbitraryExtra,
    })
    .map(({ number, additionalTransactions, usage, companion, ...rest }) => ({
      ...rest,
      address: number | (rest.direction === 'in' ? 0x80 : 0),
      ...(additionalTransactions === 0 ? {} : { additionalTransactions }),
      ...(usage === 0 ? {} : { usageBits: usage << 2 }),
      ...(superSpeed ? { companion } : {}),
    }));
}

function arbitraryConfiguration(superSpeed: boolean): fc.Arbitrary<ConfigurationDescriptor> {
  const altSetting = fc.record({
    interfaceClass: uint8,
    interfaceSubclass: uint8,
    interfaceProtocol: uint8,
    nameIndex: uint8,
    endpoints: fc.array(arbitraryEndpoint(superSpeed), { minLength: 1, maxLength: 4 }),
    extra: arbitraryExtra,
  });
  const interfaces = fc.uniqueArray(uint8, { minLength: 1, maxLength: 6 }).chain((numbers) =>
    fc.tuple(
      ...numbers.map((number) =>
        fc
          .uniqueArray(fc.tuple(uint8, altSetting), { minLength: 1, maxLength: 3, selector: ([one]) => one })
          .map((altSettings) => ({
            number,
            altSettings: altSettings.map(([alternateSetting, rest]) => ({
              ...rest,
              interfaceNumber: number,
              alternateSetting,
            })),
          })),
      ),
    ),
  );
  return fc
    .record({
      value: uint8,
      nameIndex: uint8,
      attributes: uint8,
      power: uint8,
      interfaces,
      extra: arbitraryExtra,
      functions: fc.array(
        fc.record({
          interfaceCount: uint8,
          functionClass: uint8,
          functionSubclass: uint8,
          functionProtocol: uint8,
          nameIndex: uint8,
        }),
        { maxLength: 6 },
      ),
    })
    .map(({ power, functions, ...rest }) => ({
      ...rest,
      maxPowerMa: power * (superSpeed ? 8 : 2),
      associations: functions
        .slice(0, rest.interfaces.length)
        .map((one, i) => ({ ...one, firstInterface: rest.interfaces[i]?.number ?? 0 })),
    }));
}

describe('what is encoded is parsed again', () => {
  test.each([false, true])('SuperSpeed: %s', (superSpeed) => {
    fc.assert(
      fc.property(arbitraryConfiguration(superSpeed), (configuration) => {
        const bytes = encodeConfigurationDescriptor(configuration, { superSpeed });
        expect(configurationTotalLength(bytes)).toBe(bytes.length);
        expect(parseConfigurationDescriptor(bytes)).toEqual({ ok: true, value: configuration });
      }),
    );
  });

  test('an association without its interface goes to the end', () => {
    const configuration = valueOf(parseConfigurationDescriptor(modemConfiguration));
    const associations = configuration.associations.map((one) => ({ ...one, firstInterface: 77 }));
    const bytes = encodeConfigurationDescriptor({ ...configuration, associations }, { superSpeed: false });
    expect(bytes.subarray(-8)).toEqual(bytesOf('08 0b 4d 02 02 0e 00 00'));
    expect(valueOf(parseConfigurationDescriptor(bytes)).associations).toEqual(associations);
  });

  test('companions come and go with the speed', () => {
    const slow = valueOf(parseConfigurationDescriptor(modemConfiguration));
    const fast = encodeConfigurationDescriptor(slow, { superSpeed: true });
    const endpoints = valueOf(parseConfigurationDescriptor(fast)).interfaces.flatMap((one) =>
      one.altSettings.flatMap((altSetting) => altSetting.endpoints),
    );
    expect(endpoints).toHaveLength(8);
    for (const one of endpoints) {
      expect(one.companion).toEqual({ maxBurst: 0, attributes: 0, bytesPerInterval: 0 });
    }
    const dockConfiguration = valueOf(parseConfigurationDescriptor(dock.vendorConfiguration));
    expect(encodeConfigurationDescriptor(dockConfiguration, { superSpeed: false }).length).toBe(57 - 3 * 6);
  });

  test('power is rounded up, and has an end', () => {
    const configuration = valueOf(parseConfigurationDescriptor(modemConfiguration));
    const power = (maxPowerMa: number): number | undefined =>
      encodeConfigurationDescriptor({ ...configuration, maxPowerMa }, { superSpeed: false })[8];
    expect([power(1), power(500), power(501), power(900)]).toEqual([1, 250, 251, 255]);
  });
});
