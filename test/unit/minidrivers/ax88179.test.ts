import { describe, expect, test } from 'vitest';
import { ax88179 } from '../../../src/minidrivers/ax88179.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { Packet } from '../../../src/usbnet/packet.ts';
import { DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { altSetting, configuration } from '../usbnet/hand-made-device.ts';
import { adapterContext, adapterDevice, registers } from './adapter-device.ts';
import { type Answer, converse, frameOf, receivedTransfer, startDriver } from './conversation.ts';

const nodeId = 'c0 01 0010 0006 <6';
const address = { hex: '02 00 5e 10 00 01' };
const phyStatus = 'c0 02 0003 0011 <2';
const usbLink = 'c0 01 0002 0001 <1';
const medium = 'c0 01 0022 0002 <2';

function bind(maxPacket: 512 | 1024 = 1024): Procedure<DriverBinding> {
  return ax88179.bind(adapterContext(adapterDevice(0x0b95, 0x1790, maxPacket), 'ax88179_178a'));
}

const answers = (special: Readonly<Record<string, Answer>> = {}): ReturnType<typeof registers> =>
  registers({ [nodeId]: address, 'c0 02 0003 0000 <2': { hex: '40 11' }, ...special });

const resetSteps = [
  // Power, clocks.
  '40 01 0026 0002 : 00 00',
  '40 01 0026 0002 : 20 00',
  'sleep 500000',
  '40 01 0033 0001 : 03',
  'sleep 200000',
  // EEPROM: auto-detach.
  'c0 04 0043 0001 <2',
  nodeId,
  '40 01 0010 0006 : 02 00 5e 10 00 01',
  // Collecting what is received: gigabit at SuperSpeed, to begin with.
  '40 01 002e 0005 : 07 4f 00 12 ff',
  '40 01 0055 0001 : 34',
  '40 01 0054 0001 : 52',
  // Checksums both ways, receiver, wakeup, medium.
  '40 01 0034 0001 : 67',
  '40 01 0035 0001 : 67',
  '40 01 000b 0002 : aa 03',
  '40 01 0024 0001 : 64',
  '40 01 0022 0002 : 33 01',
  // Energy Efficient Ethernet off: page 3 of the PHY, and nothing advertised.
  '40 02 0003 001f : 03 00',
  '40 02 0003 0003 : 46 32',
  '40 02 0003 001f : 00 00',
  '40 02 0003 000d : 07 00',
  '40 02 0003 000e : 3c 00',
  '40 02 0003 000d : 07 40',
  '40 02 0003 000e : 00 00',
  // Negotiation anew.
  'c0 02 0003 0000 <2',
  '40 02 0003 0000 : 40 13',
];

describe('bind (spec 3.9)', () => {
  test('every step, in Linux’s order', () => {
    const { steps, value } = converse(bind(), answers());
    expect(steps).toEqual(['interface 0 alt 0', ...resetSteps]);
    expect(value).toMatchObject({
      name: 'ax88179_178a',
      controlInterface: 0,
      dataInterface: 0,
      bulkIn: 0x82,
      bulkOut: 0x03,
      statusEndpoint: 0x81,
      macAddress: Uint8Array.of(2, 0, 0x5e, 0x10, 0, 1),
      hardMtuBytes: 1514,
      rxUrbSizeBytes: 20_480,
      mtuBytes: 1500,
      maxMtuBytes: 1500,
      flags: { sendZlp: false, multiPacket: false, linkInterrupt: true },
    });
  });

  test('a chip whose EEPROM asks for auto-detach gets it', () => {
    const { steps } = converse(
      bind(),
      answers({
        'c0 04 0043': { hex: '00 01' },
        'c0 01 0033': { hex: '03' },
        'c0 01 0026': { hex: '20 00' },
      }),
    );
    expect(steps.slice(6, 11)).toEqual([
      'c0 04 0043 0001 <2',
      'c0 01 0033 0001 <1',
      '40 01 0033 0001 : 0b',
      'c0 01 0026 0002 <2',
      '40 01 0026 0002 : 20 10',
    ]);
  });

  test('an address that no station may have is none', () => {
    const { value, steps } = converse(bind(), answers({ [nodeId]: { hex: 'ff ff ff ff ff ff' } }));
    expect(value).toBeDefined();
    expect(value?.macAddress).toBeUndefined();
    expect(steps.some((step) => step.startsWith('40 01 0010'))).toBe(false);
  });

  test.each<[string, string, Answer, string]>([
    ['altsetting', 'interface 0', 'stall', 'select the altsetting'],
    ['no power', '40 01 0026', 'timed-out', 'power up the PHY'],
    ['no address', nodeId, 'stall', 'read the MAC address'],
    ['half an address', nodeId, { hex: '02 00 5e' }, 'read the MAC address'],
    ['no collecting', '40 01 002e', 'stall', 'set up receiving'],
    ['no receiver', '40 01 000b', 'stall', 'set up receiving'],
    ['no medium', '40 01 0022', 'gone', 'set the medium'],
  ])('a device that cannot be driven: %s', (_name, step, answer, stage) => {
    const { value, error } = converse(bind(), answers({ [step]: answer }));
    expect(value).toBeUndefined();
    expect(error).toBeInstanceOf(DriverError);
    expect((error as DriverError).stage).toBe(stage);
  });

  test('without bulk endpoints there is nothing to drive', () => {
    const device = {
      ...adapterDevice(0x0b95, 0x1790),
      configuration: configuration([altSetting(0, 0, [255, 255, 0])]),
    };
    const { error } = converse(ax88179.bind(adapterContext(device, 'ax88179_178a')), answers());
    expect(error).toBeInstanceOf(DriverError);
  });
});

describe('link', () => {
  const up = bytesOf('00 00 01 00 00000000');
  const down = bytesOf('00 00 00 00 00000000');

  test('the interrupt endpoint’s bit 16, as far as it is news', () => {
    const { hooks, host } = startDriver(bind(), answers());
    hooks.status?.(up, 7, 0);
    hooks.status?.(down, 8, 0);
    expect(host.links).toEqual([]);
    hooks.status?.(up, 8, 0);
    host.carrier = true;
    hooks.status?.(up, 8, 0);
    hooks.status?.(down, 8, 0);
    expect(host.links).toEqual([
      [true, true],
      [false, true],
    ]);
  });

  // PHY status, USB link; then collecting, medium, size of a transfer, speed.
  test.each([
    ['gigabit at SuperSpeed', '00 a4', '04', '07 4f 00 12 ff', '3b 01', 20_480, 1000],
    ['gigabit at high speed', '00 a4', '02', '07 20 03 16 ff', '3b 01', 24_576, 1000],
    ['gigabit at full speed', '00 a4', '01', '07 cc 4c 18 08', '3b 01', 26_624, 1000],
    ['gigabit, half duplex', '00 84', '04', '07 4f 00 12 ff', '39 01', 20_480, 1000],
    ['100 Mbit/s at SuperSpeed', '00 64', '04', '07 ae 07 18 ff', '32 03', 26_624, 100],
    ['100 Mbit/s at high speed', '00 64', '02', '07 ae 07 18 ff', '32 03', 26_624, 100],
    ['100 Mbit/s at full speed', '00 64', '01', '07 cc 4c 18 08', '32 03', 26_624, 100],
    ['10 Mbit/s', '00 24', '04', '07 cc 4c 18 08', '32 01', 26_624, 10],
  ])('%s', (_name, phy, usb, collecting, mode, rxUrbSizeBytes, speedMbit) => {
    const { hooks, host } = startDriver(bind(), answers());
    const { steps, value } = converse(
      hooks.linkReset?.() as Procedure<boolean>,
      answers({ [phyStatus]: { hex: phy }, [usbLink]: { hex: usb } }),
    );
    expect(steps).toEqual([
      '40 01 000b 0002 : 00 00',
      '40 01 000b 0002 : 88 02',
      'c0 81 008c 0000 <4',
      usbLink,
      phyStatus,
      `40 01 002e 0005 : ${collecting}`,
      `40 01 0022 0002 : ${mode}`,
    ]);
    expect(value).toBe(true);
    expect(host.rxUrbSizeBytes).toBe(rxUrbSizeBytes);
    expect(host.speeds).toEqual([[speedMbit * 1e6, speedMbit * 1e6]]);
  });

  test('waits until the chip’s memory is empty, but not for ever', () => {
    const { hooks, host } = startDriver(bind(), answers());
    let asked = 0;
    const drained = converse(hooks.linkReset?.() as Procedure<boolean>, (request, words) => {
      if (words.startsWith('c0 81')) return { hex: ++asked < 4 ? '00 00 00 40' : '00 00 00 00' };
      return answers({ [phyStatus]: { hex: '00 a4' } })(request, words);
    });
    expect([drained.value, asked]).toEqual([true, 4]);
    const never = converse(
      hooks.linkReset?.() as Procedure<boolean>,
      answers({ 'c0 81': { hex: '00 00 00 40' } }),
    );
    expect(never.value).toBe(false);
    expect(never.steps.filter((step) => step === 'sleep 5000')).toHaveLength(20);
    expect(host.speeds).toHaveLength(1);
  });

  test('no link after all: the carrier stays off', () => {
    const { hooks, host } = startDriver(bind(), answers());
    const { value } = converse(hooks.linkReset?.() as Procedure<boolean>, answers());
    expect([value, host.rxUrbSizeBytes]).toEqual([false, undefined]);
  });
});

describe('opening and closing', () => {
  test('a chip that has kept its state only has to receive again', () => {
    const { hooks } = startDriver(bind(), answers());
    const state = { [phyStatus]: { hex: '00 a4' }, [medium]: { hex: '3b 00' } };
    const { steps } = converse(hooks.reset?.() as Procedure<void>, answers(state));
    expect(steps).toEqual([phyStatus, medium, '40 01 0022 0002 : 3b 01']);
    const ready = converse(
      hooks.reset?.() as Procedure<void>,
      answers({ ...state, [medium]: { hex: '3b 01' } }),
    );
    expect(ready.steps).toEqual([phyStatus, medium]);
  });

  test('one that has lost it is set up from the start', () => {
    const { hooks } = startDriver(bind(), answers());
    const { steps } = converse(hooks.reset?.() as Procedure<void>, answers());
    expect(steps).toEqual([phyStatus, ...resetSteps]);
  });

  test('closing stops the receiver', () => {
    const { hooks } = startDriver(bind(), answers());
    const { steps } = converse(hooks.stop?.() as Procedure<void>, answers({ [medium]: { hex: '3b 01' } }));
    expect(steps).toEqual([medium, '40 01 0022 0002 : 3b 00']);
  });

  test.each([
    [false, false, '88 02'],
    [true, false, '89 02'],
    [false, true, '8a 02'],
  ])(
    'promiscuous %s, multicast %s: receiver %s, now and after a link reset',
    (promiscuous, multicast, bits) => {
      const { hooks } = startDriver(bind(), answers());
      const set = converse(hooks.setRxMode?.({ promiscuous, multicast }) as Procedure<void>, answers());
      expect(set.steps).toEqual([`40 01 000b 0002 : ${bits}`]);
      const reset = converse(hooks.linkReset?.() as Procedure<boolean>, answers());
      expect(reset.steps).toContain(`40 01 000b 0002 : ${bits}`);
    },
  );
});

describe('transmit framing', () => {
  // The golden examples of spec 9.
  test.each([
    [60, 1024, '3C 00 00 00 00 00 00 00'],
    [1016, 1024, 'F8 03 00 00 00 80 00 80'],
    [1016, 512, 'F8 03 00 00 00 80 00 80'],
    [504, 512, 'F8 01 00 00 00 80 00 80'],
    [504, 1024, 'F8 01 00 00 00 00 00 00'],
    [1514, 1024, 'EA 05 00 00 00 00 00 00'],
  ] as const)('%i bytes in packets of %i', (length, maxPacket, header) => {
    const { hooks } = startDriver(bind(maxPacket), answers());
    const packet = new Packet(2048);
    packet.tag = 5;
    const transfer = hooks.txFixup(frameOf(packet, length), 9);
    expect(transfer).toMatchObject({ length: length + 8, payloadBytes: length, packetCount: 1 });
    expect(transfer?.buffer.subarray(0, 8)).toEqual(bytesOf(header));
    expect(transfer?.buffer.subarray(8, length + 8).every((byte) => byte === 0xa5)).toBe(true);
    expect(transfer?.buffer[length + 8]).toBe(0xee);
    expect([transfer?.packetTags[0], transfer?.packetStartUs[0]]).toEqual([5, 9]);
  });

  test('the longest packet fits, with the byte behind it; without a transfer it is given up', () => {
    const { hooks, host } = startDriver(bind(), answers());
    const transfer = hooks.txFixup(frameOf(new Packet(2048), 2048), 0);
    expect(transfer?.buffer.length).toBeGreaterThan(transfer?.length ?? 0);
    host.transfersLeft = 0;
    expect(hooks.txFixup(frameOf(new Packet(2048), 100), 0)).toBeUndefined();
    expect(hooks.txFixup(null, 0)).toBeUndefined();
  });
});

describe('receive framing', () => {
  /** A transfer of these frames: each behind two bytes, on multiples of eight; a table; its place and count. */
  function batch(
    frames: readonly Uint8Array[],
    options: {
      readonly dummies?: boolean;
      readonly flags?: readonly number[];
      readonly filler?: boolean;
    } = {},
  ): Uint8Array {
    const { dummies = true, flags = [], filler = true } = options;
    const parts: number[] = [];
    const table: number[] = [];
    for (const [i, frame] of frames.entries()) {
      parts.push(0xaa, 0xbb, ...frame);
      while (parts.length % 8 !== 0) parts.push(0xcc);
      table.push((((frame.length + 2) << 16) | (flags[i] ?? 0)) >>> 0);
      if (dummies) table.push(0x8000_0000);
    }
    const place = parts.length;
    const words = [...table, ...(filler ? [0] : []), ((place << 16) | table.length) >>> 0];
    for (const word of words) parts.push(word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24);
    return Uint8Array.from(parts);
  }
  const frame = (length: number, fill: number): Uint8Array => new Uint8Array(length).fill(fill);
  const frames = [frame(60, 1), frame(61, 2), frame(1514, 3), frame(14, 4)];

  test.each([
    ['with an empty entry behind each, as newer firmware', { dummies: true, filler: true }],
    ['without, as older firmware', { dummies: false, filler: false }],
  ])('frames %s', (_name, options) => {
    const { hooks, host } = startDriver(bind(), answers());
    expect(hooks.rxFixup(receivedTransfer(batch(frames, options)), 0)).toBe(true);
    expect(host.received).toEqual(frames);
    expect(host.stats.rxErrors).toBe(0);
  });

  test('bad frames are counted by reason, and do not keep the others back', () => {
    const { hooks, host } = startDriver(bind(), answers());
    const bad = batch([...frames, frame(13, 5), frame(100, 6)], { flags: [0, 0x2000_0000, 0x8000_0000] });
    expect(hooks.rxFixup(receivedTransfer(bad), 0)).toBe(true);
    expect(host.received).toEqual([frames[0], frames[3], frame(100, 6)]);
    expect(host.stats.rxErrors).toBe(3);
    expect(Object.fromEntries(host.stats.rxFaults)).toEqual({
      'bad-crc': 1,
      'dropped-by-device': 1,
      runt: 1,
    });
  });

  test('checksums that the chip has found bad are the IP host’s business', () => {
    const { hooks, host } = startDriver(bind(), answers());
    hooks.rxFixup(receivedTransfer(batch([frame(60, 1)], { flags: [0x17] })), 0);
    expect(host.received).toHaveLength(1);
  });

  test.each([
    ['nothing', '', 'short-transfer'],
    ['three bytes', '00 00 00', 'short-transfer'],
    ['no entries', '00 00 00 00', 'no-entries'],
    ['a table beyond the end', '00000000 01 00 04 00', 'table-out-of-bounds'],
    ['a table that reaches into the last word', '00000000 02 00 00 00', 'table-out-of-bounds'],
    ['65,535 entries', '00000000 ff ff 00 00', 'table-out-of-bounds'],
    ['a frame that reaches into the table', '00 00 10 00 01 00 00 00', 'frame-out-of-bounds'],
  ])('%s: refused', (_name, bytes, reason) => {
    const { hooks, host } = startDriver(bind(), answers());
    expect(hooks.rxFixup(receivedTransfer(bytesOf(bytes)), 0)).toBe(false);
    expect([...host.stats.rxFaults]).toEqual([[reason, 1]]);
    expect(host.received).toEqual([]);
  });

  test('what lies behind what came is not read', () => {
    const { hooks, host } = startDriver(bind(), answers());
    const transfer = receivedTransfer(batch(frames));
    transfer.actualLength -= 4;
    expect(hooks.rxFixup(transfer, 0)).toBe(false);
    expect(host.received).toEqual([]);
  });
});
