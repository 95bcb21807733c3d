import { describe, expect, test } from 'vitest';
import { asix } from '../../../src/minidrivers/asix.ts';
import { AsixReader } from '../../../src/minidrivers/asix-framing.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { Packet } from '../../../src/usbnet/packet.ts';
import { DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { adapterContext, adapterDevice, registers } from './adapter-device.ts';
import { type Answer, converse, frameOf, HostDouble, receivedTransfer, startDriver } from './conversation.ts';

const nodeId = 'c0 13';
const nodeIdOfFirst = 'c0 17';
const phyAddresses = 'c0 19';
const status = 'c0 09';
const address = { hex: '02 00 5e 10 00 01' };

const ids = {
  ax88172: 0x1720,
  ax88178: 0x1780,
  ax88772: 0x7720,
  ax88772b: 0x772b,
  ax88172a: 0x172a,
} as const;
type Chip = keyof typeof ids;

function bind(chip: Chip, vendorId = 0x0b95, productId: number = ids[chip]): Procedure<DriverBinding> {
  return asix.bind(adapterContext(adapterDevice(vendorId, productId), 'asix'));
}

/** A chip with this code, the host on its management bus at once, and a PHY at address 0x10 that has its link. */
function answers(code: string, special: Readonly<Record<string, Answer>> = {}): ReturnType<typeof registers> {
  return registers({
    ...special,
    [nodeId]: special[nodeId] ?? address,
    [nodeIdOfFirst]: special[nodeIdOfFirst] ?? address,
    [phyAddresses]: special[phyAddresses] ?? { hex: 'e0 10' },
    [status]: special[status] ?? { hex: code },
    'c0 0b 0017': special['c0 0b 0017'] ?? { hex: 'ff ff' },
  });
}

/** Without the steps around each access to the PHY: taking the bus, asking for it, giving it back. */
function chipSteps(steps: readonly string[]): string[] {
  return steps.filter((step) => !/^(40 06|40 0a|c0 09|sleep 1000$)/.test(step));
}

describe('bind (spec 3.8)', () => {
  test('AX88772: PHY inside, in Linux’s order', () => {
    const { steps, value } = converse(bind('ax88772'), answers('01'));
    expect(chipSteps(steps)).toEqual([
      'interface 0 alt 0',
      'c0 13 0000 0000 <6',
      'c0 19 0000 0000 <2',
      // Outputs, PHY, its reset.
      '40 1f 00b0 0000',
      'sleep 5000',
      '40 22 0001 0000',
      '40 20 0040 0000',
      'sleep 10000',
      '40 20 0000 0000',
      'sleep 60000',
      '40 20 0028 0000',
      'sleep 0',
      'sleep 150000',
      // Gaps, address, receiver, medium.
      '40 12 001d 0012',
      '40 14 0000 0000 : 02 00 5e 10 00 01',
      '40 10 0088 0000',
      '40 1b 0336 0000',
      // What the PHY advertises; negotiation anew.
      '40 08 0010 0004 : e1 05',
      'c0 07 0010 0000 <2',
      '40 08 0010 0000 : 00 12',
    ]);
    expect(value).toMatchObject({
      name: 'asix',
      bulkIn: 0x82,
      bulkOut: 0x03,
      statusEndpoint: 0x81,
      macAddress: Uint8Array.of(2, 0, 0x5e, 0x10, 0, 1),
      hardMtuBytes: 1514,
      rxUrbSizeBytes: 2048,
      flags: { sendZlp: false, multiPacket: true, linkInterrupt: true },
      facts: { Chip: 'AX88772, PHY inside' },
    });
  });

  test('each access to the PHY takes the management bus, and gives it back', () => {
    const { steps } = converse(bind('ax88772'), answers('01'));
    const at = steps.indexOf('40 08 0010 0004 : e1 05');
    expect(steps.slice(at - 3, at + 2)).toEqual([
      '40 06 0000 0000',
      'sleep 1000',
      'c0 09 0000 0000 <1',
      '40 08 0010 0004 : e1 05',
      '40 0a 0000 0000',
    ]);
  });

  test('a chip that never gives the bus away is asked 31 times, and then taken at its word', () => {
    const { steps, value } = converse(bind('ax88772'), answers('00'));
    expect(value).toBeDefined();
    const first = steps.indexOf('40 08 0010 0004 : e1 05');
    expect(steps.slice(0, first).filter((step) => step === '40 06 0000 0000')).toHaveLength(31);
  });

  test('AX88772 with a PHY outside', () => {
    const { steps, value } = converse(bind('ax88772'), answers('01', { [phyAddresses]: { hex: '01 03' } }));
    expect(steps).toContain('40 22 0000 0000');
    expect(steps).toContain('40 20 0048 0000');
    expect(steps).toContain('40 08 0003 0004 : e1 05');
    expect(value?.facts).toEqual({ Chip: 'AX88772, PHY outside' });
  });

  test('AX88772A: another reset, and registers of its PHY put right', () => {
    const { steps, value } = converse(
      bind('ax88772'),
      answers('11', { 'c0 07 0010 0015': { hex: 'c8 03' } }),
    );
    const own = chipSteps(steps);
    const at = own.indexOf('40 1f 0080 0000');
    expect(own.slice(at, at + 18)).toEqual([
      '40 1f 0080 0000',
      'sleep 5000',
      '40 22 0011 0000',
      'sleep 10000',
      '40 20 0060 0000',
      'sleep 10000',
      '40 20 0020 0000',
      'sleep 160000',
      '40 20 0000 0000',
      'sleep 0',
      '40 20 0020 0000',
      'sleep 200000',
      'c0 07 0010 0014 <2',
      '40 08 0010 0014 : 2c 44',
      'c0 07 0010 0015 <2',
      'c0 07 0010 0016 <2',
      '40 08 0010 0016 : 44 40',
      '40 12 001d 0012',
    ]);
    expect(value?.facts).toEqual({ Chip: 'AX88772A, PHY inside' });
  });

  test('AX88772B: the address from its EEPROM, and how it collects', () => {
    const eeprom = {
      'c0 0b 0004': { hex: '02 11' },
      'c0 0b 0005': { hex: '22 33' },
      'c0 0b 0006': { hex: '44 55' },
    };
    const { steps, value } = converse(bind('ax88772b'), answers('21', eeprom));
    expect(value?.macAddress).toEqual(Uint8Array.of(2, 0x11, 0x22, 0x33, 0x44, 0x55));
    expect(steps).toContain('40 2a 8000 8001');
    expect(value?.facts).toEqual({ Chip: 'AX88772B, PHY inside' });
  });

  test('AX88772B without an address in its EEPROM: the one in its register', () => {
    const { value } = converse(bind('ax88772b'), answers('21', { 'c0 0b': { hex: 'ff ff' } }));
    expect(value?.macAddress).toEqual(Uint8Array.of(2, 0, 0x5e, 0x10, 0, 1));
  });

  test('AX88178: its PHY is set up on opening', () => {
    const started = startDriver(bind('ax88178'), answers('01', { [phyAddresses]: { hex: 'e0 18' } }));
    expect(started.binding).toMatchObject({ rxUrbSizeBytes: 2048, facts: { Chip: 'AX88178' } });
    const { steps } = converse(
      started.hooks.reset?.() as Procedure<void>,
      answers('01', { 'c0 07 0018 0002': { hex: '41 01' } }),
    );
    expect(chipSteps(steps)).toEqual([
      '40 0d 0000 0000',
      'c0 0b 0017 0000 <2',
      '40 0e 0000 0000',
      // Power for the PHY by the outputs.
      '40 1f 008c 0000',
      'sleep 40000',
      '40 1f 003c 0000',
      'sleep 30000',
      '40 1f 001c 0000',
      'sleep 300000',
      '40 1f 003c 0000',
      'sleep 30000',
      'c0 07 0018 0002 <2',
      '40 22 0000 0000',
      '40 20 0000 0000',
      'sleep 150000',
      '40 20 0048 0000',
      'sleep 150000',
      '40 10 0000 0000',
      // Marvell's delays.
      '40 08 0018 0014 : 82 00',
      'sleep 60000',
      '40 08 0018 0000 : 00 90',
      'sleep 500',
      'c0 07 0018 0000 <2',
      '40 08 0018 0004 : e1 05',
      '40 08 0018 0009 : 00 02',
      '40 1b 0376 0000',
      'c0 07 0018 0000 <2',
      '40 08 0018 0000 : 00 12',
      '40 14 0000 0000 : 02 00 5e 10 00 01',
      '40 10 0088 0000',
    ]);
  });

  test('AX88178 with a Realtek PHY, powered up the other way', () => {
    const { hooks } = startDriver(bind('ax88178'), answers('01'));
    const { steps } = converse(
      hooks.reset?.() as Procedure<void>,
      answers('01', { 'c0 0b 0017': { hex: '0c 01' }, 'c0 07 0010 0002': { hex: '1c 00' } }),
    );
    const own = chipSteps(steps);
    expect(own.slice(3, 9)).toEqual([
      '40 1f 008c 0000',
      'sleep 40000',
      '40 1f 0004 0000',
      'sleep 30000',
      '40 1f 000c 0000',
      'sleep 30000',
    ]);
    const at = own.indexOf('40 08 0010 001f : 05 00');
    expect(own.slice(at, at + 5)).toEqual([
      '40 08 0010 001f : 05 00',
      '40 08 0010 000c : 00 00',
      'c0 07 0010 0001 <2',
      '40 08 0010 0001 : 80 00',
      '40 08 0010 001f : 00 00',
    ]);
  });

  test.each([
    ['usual', 0x0b95, 0x1720, ['13', '01', '03']],
    ['D-Link DUB-E100', 0x2001, 0x1a00, ['9f', '9d', '9f']],
    ['Hawking UF200', 0x07b8, 0x420a, ['1f', '1d', '1f']],
  ])('AX88172, %s: outputs, address, PHY', (_name, vendorId, productId, outputs) => {
    const { steps, value } = converse(bind('ax88172', vendorId, productId), answers('01'));
    expect(chipSteps(steps)).toEqual([
      'interface 0 alt 0',
      ...outputs.flatMap((bits) => [`40 1f 00${bits} 0000`, 'sleep 5000']),
      '40 10 0080 0000',
      'c0 17 0000 0000 <6',
      'c0 19 0000 0000 <2',
      '40 08 0010 0000 : 00 80',
      'sleep 500',
      'c0 07 0010 0000 <2',
      '40 08 0010 0004 : e1 05',
      'c0 07 0010 0000 <2',
      '40 08 0010 0000 : 00 12',
    ]);
    expect(value).toMatchObject({ rxUrbSizeBytes: undefined, flags: { multiPacket: false } });
  });

  test.each<[string, Chip, Readonly<Record<string, Answer>>, string]>([
    ['altsetting refused', 'ax88772', { 'interface 0': 'stall' }, 'select the altsetting'],
    ['no address', 'ax88772', { [nodeId]: 'stall' }, 'read the MAC address'],
    ['half an address', 'ax88178', { [nodeId]: { hex: '02 00' } }, 'read the MAC address'],
    ['no PHY', 'ax88772', { [phyAddresses]: 'stall' }, 'find the PHY'],
    ['a chip that does not say what it is', 'ax88772', { [status]: 'stall' }, 'find out which chip it is'],
    ['outputs refused', 'ax88172', { '40 1f': 'timed-out' }, 'set the outputs'],
    ['reset refused', 'ax88178', { '40 20': 'gone' }, 'reset the PHY'],
    ['the AX88172A, which is another one', 'ax88172a', {}, 'bind'],
  ])('cannot be driven: %s', (_name, chip, special, stage) => {
    const { value, error } = converse(bind(chip), answers('01', special));
    expect(value).toBeUndefined();
    expect(error).toBeInstanceOf(DriverError);
    expect((error as DriverError).stage).toBe(stage);
  });
});

describe('link', () => {
  test('the interrupt endpoint’s third byte, as far as it is news', () => {
    const { hooks, host } = startDriver(bind('ax88772'), answers('01'));
    const up = bytesOf('a1 00 01 00 00000000');
    const down = bytesOf('a1 00 00 00 00000000');
    hooks.status?.(up, 7, 0);
    hooks.status?.(down, 8, 0);
    hooks.status?.(up, 8, 0);
    host.carrier = true;
    hooks.status?.(down, 8, 0);
    expect(host.links).toEqual([
      [true, true],
      [false, true],
    ]);
  });

  // BMSR, BMCR, own and partner's abilities, gigabit control and status; then medium and speed.
  test.each<[Chip, string, readonly string[], string, number]>([
    ['ax88772', '100 full', ['2c 78', '00 10', 'e1 01', 'e1 41'], '0336', 100],
    ['ax88772', '100 half', ['2c 78', '00 10', 'e1 01', 'a1 40'], '0334', 100],
    ['ax88772', '10 full', ['2c 78', '00 10', 'e1 01', '61 40'], '0136', 10],
    ['ax88772', '10 half', ['2c 78', '00 10', 'e1 01', '21 40'], '0134', 10],
    ['ax88772', 'fixed at 100 full', ['04 78', '00 21'], '0336', 100],
    ['ax88178', 'gigabit', ['2c 79', '00 10', 'e1 05', 'e1 45', '00 02', '00 08'], '037f', 1000],
    ['ax88178', '100 full', ['2c 79', '00 10', 'e1 05', 'e1 45', '00 02', '00 00'], '037e', 100],
    ['ax88178', '10 half', ['2c 79', '00 10', 'e1 05', '21 40', '00 02', '00 00'], '017c', 10],
    ['ax88172', '100 full', ['2c 78', '00 10', 'e1 01', 'e1 41'], '0016', 100],
    ['ax88172', '100 half', ['2c 78', '00 10', 'e1 01', 'a1 40'], '0014', 100],
  ])('%s, %s: medium %s', (chip, _name, values, medium, speedMbit) => {
    const { hooks, host } = startDriver(bind(chip), answers('01'));
    const [bmsr = '', bmcr = '', own = '', partner = '', control = '', gigabit = ''] = values;
    const { steps, value } = converse(
      hooks.linkReset?.() as Procedure<boolean>,
      answers('01', {
        'c0 07 0010 0001': { hex: bmsr },
        'c0 07 0010 0000': { hex: bmcr },
        'c0 07 0010 0004': { hex: own },
        'c0 07 0010 0005': { hex: partner },
        'c0 07 0010 0009': { hex: control },
        'c0 07 0010 000a': { hex: gigabit },
      }),
    );
    expect(value).toBe(true);
    expect(steps.at(-1)).toBe(`40 1b ${medium} 0000`);
    expect(host.speeds).toEqual([[speedMbit * 1e6, speedMbit * 1e6]]);
  });

  test.each([
    ['none', '08 78'],
    ['no PHY at all', 'ff ff'],
  ])('%s: the carrier stays off', (_name, bmsr) => {
    const { hooks } = startDriver(bind('ax88772'), answers('01'));
    const { value } = converse(
      hooks.linkReset?.() as Procedure<boolean>,
      answers('01', { 'c0 07 0010 0001': { hex: bmsr } }),
    );
    expect(value).toBe(false);
  });

  test.each<[Chip, boolean, boolean, string]>([
    ['ax88772', false, false, '0088'],
    ['ax88772', true, false, '0089'],
    ['ax88178', false, true, '008a'],
    ['ax88172', false, false, '008c'],
  ])('%s, promiscuous %s, multicast %s: receiver %s', (chip, promiscuous, multicast, bits) => {
    const { hooks } = startDriver(bind(chip), answers('01'));
    const { steps } = converse(
      hooks.setRxMode?.({ promiscuous, multicast }) as Procedure<void>,
      answers('01'),
    );
    expect(steps).toEqual([`40 10 ${bits} 0000`]);
  });

  test('closing an AX88772 stops it; opening sets it up again', () => {
    const { hooks } = startDriver(bind('ax88772'), answers('01'));
    expect(converse(hooks.stop?.() as Procedure<void>, answers('01')).steps).toEqual(['40 1b 0000 0000']);
    expect(converse(hooks.reset?.() as Procedure<void>, answers('01')).steps).toEqual([
      '40 12 001d 0012',
      '40 14 0000 0000 : 02 00 5e 10 00 01',
      '40 10 0088 0000',
      '40 1b 0336 0000',
    ]);
  });
});

describe('transmit framing', () => {
  // The golden examples of spec 9.
  test.each([
    [60, '3C 00 C3 FF', ''],
    [508, 'FC 01 03 FE', '00 00 FF FF'],
    [1020, 'FC 03 03 FC', '00 00 FF FF'],
    [1514, 'EA 05 15 FA', ''],
  ])('%i bytes', (length, header, padding) => {
    const { hooks } = startDriver(bind('ax88772'), answers('01'));
    const transfer = hooks.txFixup(frameOf(new Packet(2048), length), 0);
    const end = bytesOf(padding);
    expect(transfer).toMatchObject({ length: 4 + length + end.length, payloadBytes: length, packetCount: 1 });
    expect(transfer?.buffer.subarray(0, 4)).toEqual(bytesOf(header));
    expect(transfer?.buffer.subarray(4, 4 + length).every((byte) => byte === 0xa5)).toBe(true);
    expect(transfer?.buffer.subarray(4 + length, 4 + length + end.length)).toEqual(end);
  });

  test('the longest packet fits; without a transfer it is given up, and counted', () => {
    const { hooks, host } = startDriver(bind('ax88772'), answers('01'));
    expect(hooks.txFixup(frameOf(new Packet(2048), 2048), 0)?.length).toBe(2052);
    host.transfersLeft = 0;
    expect(hooks.txFixup(frameOf(new Packet(2048), 100), 0)).toBeUndefined();
    expect(host.stats.txDropped).toBe(1);
    expect(hooks.txFixup(null, 0)).toBeUndefined();
  });

  test('the AX88172 has frames alone', () => {
    const { hooks, host } = startDriver(bind('ax88172'), answers('01'));
    expect(hooks.txFixup(frameOf(new Packet(2048), 100), 0)?.length).toBe(100);
    hooks.rxFixup(receivedTransfer(new Uint8Array(60).fill(7)), 0);
    expect(host.received).toEqual([new Uint8Array(60).fill(7)]);
  });
});

describe('receive framing', () => {
  function setUp(): { host: HostDouble; reader: AsixReader } {
    const host = new HostDouble({ bulkOut: 3, txBufferBytes: 1, maxPacketsPerTransfer: 1 });
    return { host, reader: new AsixReader(host, 1518) };
  }
  const frame = (length: number, fill: number): Uint8Array => new Uint8Array(length).fill(fill);
  function stream(...frames: readonly Uint8Array[]): Uint8Array {
    const bytes: number[] = [];
    for (const each of frames) {
      const { length } = each;
      bytes.push(length & 0xff, length >> 8, ~length & 0xff, (~length >> 8) & 0xff, ...each);
      if (length % 2 !== 0) bytes.push(0);
    }
    return Uint8Array.from(bytes);
  }
  const frames = [frame(60, 1), frame(61, 2), frame(1514, 3), frame(1515, 4), frame(14, 5), frame(1518, 6)];

  test('frames of even and odd lengths, in one transfer', () => {
    const { host, reader } = setUp();
    const bytes = stream(...frames);
    expect(reader.read(bytes, bytes.length, 0)).toBe(true);
    expect(host.received).toEqual(frames);
  });

  test('a header may have bits above its eleven, as long as they are told apart', () => {
    const { host, reader } = setUp();
    // The chip sets bits that say what it has found out of the frame.
    const bytes = stream(frame(60, 1));
    bytes[1] = 0x98;
    expect(reader.read(bytes, bytes.length, 0)).toBe(true);
    expect(host.received).toEqual([frame(60, 1)]);
  });

  test('cut in two at every even place: frames and headers go over the border', () => {
    const bytes = stream(frame(60, 1), frame(61, 2), frame(62, 3));
    for (let border = 0; border <= bytes.length; border += 2) {
      const { host, reader } = setUp();
      const first = bytes.subarray(0, border);
      const second = bytes.subarray(border);
      expect(reader.read(first, first.length, 0)).toBe(true);
      expect(reader.read(second, second.length, 0)).toBe(true);
      expect(host.received).toEqual([frame(60, 1), frame(61, 2), frame(62, 3)]);
      expect(host.stats.rxFaults.size).toBe(0);
    }
  });

  test('in transfers of two bytes each', () => {
    const { host, reader } = setUp();
    const bytes = stream(...frames);
    for (let i = 0; i < bytes.length; i += 2) reader.read(bytes.subarray(i, i + 2), 2, 0);
    expect(host.received).toEqual(frames);
  });

  test('a header of no frame is skipped; so is an empty transfer', () => {
    const { host, reader } = setUp();
    const bytes = Uint8Array.from([0, 0, 0xff, 0xff, ...stream(frame(60, 1))]);
    expect(reader.read(bytes, bytes.length, 0)).toBe(true);
    expect(reader.read(bytes, 0, 0)).toBe(true);
    expect(host.received).toEqual([frame(60, 1)]);
  });

  test.each([
    ['halves that don’t match', '3c 00 c3 fe 0000', 'bad-header'],
    ['1,519 bytes', 'ef 05 10 fa 0000', 'too-long'],
    ['a byte left over', '00 00 ff ff 00', 'odd-transfer'],
    ['three bytes', '3c 00 c3', 'odd-transfer'],
  ])('%s: refused, and the next transfer is read from its start', (_name, bytes, reason) => {
    const { host, reader } = setUp();
    const bad = bytesOf(bytes);
    expect(reader.read(bad, bad.length, 0)).toBe(false);
    expect([...host.stats.rxFaults]).toEqual([[reason, 1]]);
    const good = stream(frame(60, 1));
    expect(reader.read(good, good.length, 0)).toBe(true);
    expect(host.received).toEqual([frame(60, 1)]);
  });

  test('a transfer that went missing: the rest of the frame is not made up, and what follows is read', () => {
    const { host, reader } = setUp();
    const bytes = stream(frame(1514, 1), frame(1514, 2), frame(1514, 3));
    const first = bytes.subarray(0, 1024);
    const last = stream(frame(200, 4), frame(700, 5));
    expect(reader.read(first, first.length, 0)).toBe(true);
    // The second transfer is lost; the third starts with a header.
    expect(reader.read(last, last.length, 0)).toBe(true);
    expect(host.received).toEqual([frame(200, 4), frame(700, 5)]);
    expect([...host.stats.rxFaults]).toEqual([['out-of-sync', 1]]);
    expect(host.stats.rxErrors).toBe(1);
  });

  test('opening anew forgets half a frame', () => {
    const { hooks, host } = startDriver(bind('ax88772'), answers('01'));
    const bytes = stream(frame(1000, 1));
    hooks.rxFixup(receivedTransfer(bytes.subarray(0, 512)), 0);
    converse(hooks.reset?.() as Procedure<void>, answers('01'));
    expect(hooks.rxFixup(receivedTransfer(stream(frame(60, 2))), 0)).toBe(true);
    expect(host.received).toEqual([frame(60, 2)]);
  });
});
