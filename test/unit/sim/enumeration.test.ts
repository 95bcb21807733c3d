import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/sim/catalogue.ts';
import { parseCdcFunctional } from '../../../src/wire/cdc-functional.ts';
import { parseBosDescriptor } from '../../../src/wire/usb-bos.ts';
import { parseConfigurationDescriptor, parseDeviceDescriptor } from '../../../src/wire/usb-descriptor.ts';
import { parseLanguageList, parseStringDescriptor } from '../../../src/wire/usb-string.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { bulkIn, bulkOut, cdcCatalogue, interruptIn, personality, SimSetup } from './sim-setup.ts';

const getDescriptor = 6;
const english = 0x0409;

/** GET_DESCRIPTOR, as a host does it. */
function descriptor(setup: SimSetup, type: number, index = 0, length = 4096): Uint8Array {
  const result = setup.driver.controlIn(
    0x80,
    getDescriptor,
    (type << 8) | index,
    type === 3 ? english : 0,
    length,
  );
  expect(result.status).toBe('completed');
  return result.data;
}

test('the default set, in this order', () => {
  expect(catalogue.map(({ name, firmware, speed }) => [name, firmware, speed])).toEqual([
    ['modem-10mbit', 'cdc-ecm', 'super'],
    ['adapter-100mbit', 'cdc-ncm', 'super'],
    ['modem-usb2-10mbit', 'cdc-ecm', 'high'],
    ['tether-usb2', 'cdc-ncm', 'high'],
    ['adapter-2500mbit', 'ax88179', 'super'],
    ['adapter-usb2-1gbe', 'ax88178', 'high'],
    ['adapter-usb2-100mbit', 'ax88772a', 'high'],
    ['adapter-usb2-10mbit', 'ax88172', 'high'],
    ['tether-rndis', 'rndis', 'high'],
    ['board-eem', 'cdc-eem', 'high'],
    ['stick-huawei', 'huawei-ncm', 'high'],
  ]);
  expect(new Set(catalogue.map(({ productId }) => productId)).size).toBe(catalogue.length);
});

describe.each([...cdcCatalogue, personality('modem-10mbit', { name: 'full-speed', speed: 'full' })])(
  '$name',
  (what) => {
    const superSpeed = what.speed === 'super';

    test('what the control endpoint answers is what the transport says', () => {
      const setup = new SimSetup(what);
      const { device } = setup.driver.transport;
      expect(device.speed).toBe(what.speed);
      expect(parseDeviceDescriptor(descriptor(setup, 1))).toEqual({ ok: true, value: device.descriptor });
      expect(parseConfigurationDescriptor(descriptor(setup, 2), { superSpeed })).toEqual({
        ok: true,
        value: device.configuration,
      });
      expect(device.descriptor).toMatchObject({
        vendorId: 0x1209,
        productId: what.productId,
        usbVersion: superSpeed ? 0x0300 : 0x0200,
        maxPacketSize0: superSpeed ? 9 : 64,
      });
    });

    test('a CDC function: control interface with an interrupt endpoint, data interface with a bulk pair in altsetting 1', () => {
      const { configuration } = new SimSetup(what).driver.transport.device;
      const ncm = what.firmware === 'cdc-ncm';
      const bulkPacket = { full: 64, high: 512, super: 1024 }[what.speed];
      expect(
        configuration.interfaces.flatMap(({ altSettings }) =>
          altSettings.map((alt) => [
            alt.interfaceNumber,
            alt.alternateSetting,
            alt.interfaceClass,
            alt.interfaceSubclass,
            alt.interfaceProtocol,
            ...alt.endpoints.map(({ address, type, maxPacketSize, companion }) => [
              address,
              type,
              maxPacketSize,
              companion?.maxBurst,
            ]),
          ]),
        ),
      ).toEqual([
        [0, 0, 2, ncm ? 0x0d : 6, 0, [interruptIn, 'interrupt', 16, superSpeed ? 0 : undefined]],
        [1, 0, 0x0a, 0, ncm ? 1 : 0],
        [
          1,
          1,
          0x0a,
          0,
          ncm ? 1 : 0,
          [bulkIn, 'bulk', bulkPacket, superSpeed ? 15 : undefined],
          [bulkOut, 'bulk', bulkPacket, superSpeed ? 15 : undefined],
        ],
      ]);
      expect(configuration.associations).toMatchObject([
        { firstInterface: 0, interfaceCount: 2, functionClass: 2 },
      ]);
    });

    test('functional descriptors and strings', () => {
      const setup = new SimSetup(what);
      const { device } = setup.driver.transport;
      const control = device.configuration.interfaces[0]?.altSettings[0];
      const functional = parseCdcFunctional(control?.extra ?? new Uint8Array(0));
      expect(functional).toMatchObject({
        header: { version: 0x0110 },
        union: { controlInterface: 0, dataInterfaces: [1] },
        ethernet: { maxSegmentSize: 1514 },
        duplicates: 0,
        malformed: 0,
      });
      expect(functional.ncm).toEqual(
        what.firmware === 'cdc-ncm' ? { version: 0x0100, capabilities: 0x11 } : undefined,
      );

      const text = (index: number): string | undefined => parseStringDescriptor(descriptor(setup, 3, index));
      expect(parseLanguageList(descriptor(setup, 3, 0))).toEqual([english]);
      expect(text(device.descriptor.manufacturerIndex)).toBe('Queuescope');
      expect(text(device.descriptor.productIndex)).toBe(what.product);
      expect(text(functional.ethernet?.macAddressIndex ?? 0)).toBe(
        `02515300${what.productId.toString(16).padStart(4, '0')}`,
      );
      expect(setup.driver.controlIn(0x80, getDescriptor, 0x0309, english, 255).status).toBe('stall');
    });

    test('a BOS descriptor at SuperSpeed, none before', () => {
      const answer = new SimSetup(what).driver.controlIn(0x80, getDescriptor, 0x0f00, 0, 255);
      const parsed = answer.status === 'completed' ? parseBosDescriptor(answer.data) : undefined;
      const bos = {
        usb2Extension: { attributes: 2 },
        superSpeed: {
          attributes: 0,
          speedsSupported: 0x0e,
          functionalitySupport: 1,
          u1ExitLatencyUs: 10,
          u2ExitLatencyUs: 511,
        },
        others: [],
      };
      expect(parsed).toEqual(superSpeed ? { ok: true, value: bos } : undefined);
    });
  },
);

test('the bytes of the modem’s descriptors', () => {
  const setup = new SimSetup(personality('modem-10mbit'));
  expect(descriptor(setup, 1)).toEqual(bytesOf('12 01 00 03 EF 02 01 09 09 12 01 00 00 01 01 02 03 01'));
  expect(descriptor(setup, 2)).toEqual(
    bytesOf(
      `09 02 6A 00 02 01 00 80 70 | 08 0B 00 02 02 06 00 05 |
       09 04 00 00 01 02 06 00 05 | 05 24 00 10 01 | 05 24 06 00 01 | 0D 24 0F 04 00 00 00 00 EA 05 00 00 00 |
       07 05 82 03 10 00 09 | 06 30 00 00 10 00 |
       09 04 01 00 00 0A 00 00 06 | 09 04 01 01 02 0A 00 00 06 |
       07 05 81 02 00 04 00 | 06 30 0F 00 00 00 | 07 05 01 02 00 04 00 | 06 30 0F 00 00 00`,
    ),
  );
});

describe('standard requests', () => {
  const modem = personality('modem-10mbit');

  test('an answer is never longer than was asked for', () => {
    const setup = new SimSetup(modem);
    expect(descriptor(setup, 2, 0, 9)).toHaveLength(9);
    expect(descriptor(setup, 1, 0, 8)).toHaveLength(8);
    expect(descriptor(setup, 1, 0, 64)).toHaveLength(18);
  });

  test('take the time of a control transfer', () => {
    const times = (['full', 'high', 'super'] as const).map((speed) => {
      const { driver } = new SimSetup({ ...modem, speed });
      let doneAtUs = 0;
      driver.transport.setHandler({
        handleTransferDone: () => undefined,
        handleRequestDone: (_result, nowUs) => (doneAtUs = nowUs),
        handleGone: () => undefined,
      });
      driver.transport.request(
        { kind: 'control-in', requestType: 0x80, request: 8, value: 0, index: 0, length: 1, timeoutMs: 10 },
        0,
      );
      driver.run(10_000);
      return doneAtUs;
    });
    expect(times[0]).toBeGreaterThan(1000);
    expect(times[1]).toBeGreaterThan(250);
    expect(times[2]).toBeGreaterThan(125);
    expect(Math.max(...times)).toBeLessThan(1100);
  });

  test('configuration and altsettings', () => {
    const { driver } = new SimSetup(modem);
    const configuration = (): Uint8Array => driver.controlIn(0x80, 8, 0, 0, 1).data;
    const altSetting = (): readonly unknown[] => Object.values(driver.controlIn(0x81, 10, 0, 1, 1));
    expect(configuration()).toEqual(Uint8Array.of(1));
    expect(altSetting()).toEqual(['completed', Uint8Array.of(0)]);
    expect(driver.setInterface(1, 1).status).toBe('completed');
    expect(altSetting()).toEqual(['completed', Uint8Array.of(1)]);
    expect(driver.setInterface(1, 2).status).toBe('stall');
    expect(driver.setInterface(7, 0).status).toBe('stall');
    expect(altSetting()).toEqual(['completed', Uint8Array.of(1)]);

    expect(driver.controlOut(0x00, 9, 2, 0).status).toBe('stall');
    expect(driver.controlOut(0x00, 9, 0, 0).status).toBe('completed');
    expect(configuration()).toEqual(Uint8Array.of(0));
    expect(altSetting()[0]).toBe('stall');
    expect(driver.setInterface(1, 1).status).toBe('stall');
    // Class requests need a configuration, descriptors don't.
    expect(driver.controlOut(0x21, 0x43, 0x0c, 0).status).toBe('stall');
    expect(driver.controlIn(0x80, getDescriptor, 0x0100, 0, 18).status).toBe('completed');

    expect(driver.controlOut(0x00, 9, 1, 0).status).toBe('completed');
    expect(configuration()).toEqual(Uint8Array.of(1));
    expect(altSetting()).toEqual(['completed', Uint8Array.of(0)]);
  });

  test('SET_INTERFACE in its raw form does the same as the transport’s own request', () => {
    const setup = new SimSetup(modem);
    expect(setup.driver.controlOut(0x01, 11, 1, 1).status).toBe('completed');
    const transfer = setup.driver.in(bulkIn, 2048);
    expect(setup.driver.submit(transfer)).toBe('ok');
    expect(setup.driver.controlOut(0x01, 11, 0, 1).status).toBe('completed');
    expect(transfer.status).toBe('cancelled');
    expect(setup.driver.submit(transfer)).toBe('failed');
  });

  test('status and features', () => {
    const setup = new SimSetup(modem);
    const { driver } = setup;
    setup.open();
    const status = (recipient: number, index: number): Uint8Array | string => {
      const result = driver.controlIn(0x80 | recipient, 0, 0, index, 2);
      return result.status === 'completed' ? result.data : result.status;
    };
    expect(status(0, 0)).toEqual(Uint8Array.of(0, 0));
    expect(driver.controlOut(0x00, 3, 1, 0).status).toBe('completed');
    expect(status(0, 0)).toEqual(Uint8Array.of(2, 0));
    expect(status(1, 1)).toEqual(Uint8Array.of(0, 0));
    expect(status(1, 9)).toBe('stall');
    expect(status(2, bulkOut)).toEqual(Uint8Array.of(0, 0));
    expect(driver.controlOut(0x02, 3, 0, bulkOut).status).toBe('completed');
    expect(status(2, bulkOut)).toEqual(Uint8Array.of(1, 0));
    expect(status(2, bulkIn)).toEqual(Uint8Array.of(0, 0));
    // Choosing the altsetting again starts its endpoints afresh.
    setup.open();
    expect(status(2, bulkOut)).toEqual(Uint8Array.of(0, 0));
    expect(status(2, 0x05)).toBe('stall');
    // U1 and U2 are features of SuperSpeed alone.
    expect(driver.controlOut(0x00, 3, 48, 0).status).toBe('completed');
    expect(new SimSetup({ ...modem, speed: 'high' }).driver.controlOut(0x00, 3, 48, 0).status).toBe('stall');
    expect(driver.controlOut(0x00, 48, 0, 0, new Uint8Array(6)).status).toBe('completed');
  });

  test('what no device knows is stalled', () => {
    const { driver } = new SimSetup(modem);
    for (const [requestType, request] of [
      [0x80, 77],
      [0x00, 77],
      [0xc0, 6],
      [0xa1, 0x80],
      [0x80, 6],
    ] as const) {
      const result =
        requestType >= 0x80
          ? driver.controlIn(requestType, request, 0, 0, 64)
          : driver.controlOut(requestType, request, 0, 0);
      expect(result.status).toBe('stall');
    }
  });
});
