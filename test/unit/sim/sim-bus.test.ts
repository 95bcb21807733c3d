import { describe, expect, test } from 'vitest';
import type { SimSpeed } from '../../../src/sim/sim-device.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import {
  BareSetup,
  bulkIn,
  bulkOut,
  interruptIn,
  otherBulkOut,
  packetBytes,
  pattern,
} from './bare-device.ts';

const speeds: readonly SimSpeed[] = ['full', 'high', 'super'];

describe.each(speeds)('messages from the host at %s speed', (speed) => {
  const packet = packetBytes[speed];
  test.each([
    // length, zero packet, ends the message
    [0, false, true],
    [0, true, true],
    [1, false, true],
    [packet - 1, false, true],
    [packet, false, false],
    [packet, true, true],
    [packet + 1, false, true],
    [3 * packet, false, false],
    [3 * packet, true, true],
    [40 * packet, false, false],
    [40 * packet + 7, true, true],
  ])('%i bytes, zeroPacket %s: ends the message %s', (length, zeroPacket, ends) => {
    const { driver, sink } = new BareSetup(speed);
    const bytes = pattern(length);
    const transfer = driver.out(bulkOut, bytes, zeroPacket);
    expect(driver.submit(transfer)).toBe('ok');
    driver.run(100_000);
    expect(driver.reports).toHaveLength(1);
    expect(transfer.status).toBe('completed');
    expect(transfer.actualLength).toBe(length);
    expect(sink.messages).toHaveLength(ends ? 1 : 0);
    expect(sink.unfinishedBytes).toBe(ends ? 0 : length);

    // What comes next goes on with the message, or starts another.
    driver.submit(driver.out(bulkOut, pattern(5, 9)));
    driver.run(100_000);
    const next = pattern(5, 9);
    expect(sink.messages).toEqual(ends ? [bytes, next] : [Uint8Array.from([...bytes, ...next])]);
  });
});

describe.each(speeds)('messages to the host at %s speed', (speed) => {
  const packet = packetBytes[speed];

  /** Reads messages with transfers of some length; gives what each transfer got. */
  function read(
    length: number,
    ...messages: readonly Uint8Array[]
  ): readonly (readonly [string, Uint8Array])[] {
    const setup = new BareSetup(speed);
    for (const message of messages) setup.give(message);
    for (let i = 0; i < 4; i++) setup.driver.submit(setup.driver.in(bulkIn, length));
    setup.driver.run(200_000);
    return setup.driver.reports.map(({ status, bytes }) => [status, bytes] as const);
  }

  test('a short packet ends the transfer', () => {
    const [a, b] = [pattern(packet + 3, 1), pattern(1, 2)];
    expect(read(4 * packet, a, b)).toEqual([
      ['completed', a],
      ['completed', b],
    ]);
  });

  test('a message on a packet boundary ends with an empty packet, within the same transfer', () => {
    const message = pattern(2 * packet);
    expect(read(4 * packet, message)).toEqual([['completed', message]]);
  });

  test('a transfer that is full is done; the empty packet is for the next one', () => {
    const message = pattern(2 * packet);
    expect(read(2 * packet, message)).toEqual([
      ['completed', message],
      ['completed', new Uint8Array(0)],
    ]);
  });

  test('a message longer than a transfer goes on in the next', () => {
    const message = pattern(3 * packet + 10);
    expect(read(2 * packet, message)).toEqual([
      ['completed', message.subarray(0, 2 * packet)],
      ['completed', message.subarray(2 * packet)],
    ]);
  });

  test('a packet for which there is no room is babble; what has room is kept, the packet is gone', () => {
    const long = pattern(2 * packet, 3);
    const after = pattern(4, 4);
    const room = packet + 9;
    expect(read(room, long, after)).toEqual([
      ['overflow', long.subarray(0, room)],
      ['completed', new Uint8Array(0)],
      ['completed', after],
    ]);
  });

  test('an exact fit with a short last packet is no babble', () => {
    const message = pattern(packet + 9);
    expect(read(packet + 9, message)).toEqual([['completed', message]]);
  });

  test('nothing to send: the transfers stay out', () => {
    expect(read(packet)).toEqual([]);
  });
});

describe('throughput', () => {
  /** Keeps transfers of that length in flight and counts bytes in a second, after some time to get going. */
  function saturate(setup: BareSetup, transfers: readonly Transfer[]): () => number {
    setup.sink.keep = false;
    let bytes = 0;
    const mine = new Set(transfers);
    const before = setup.driver.onDone;
    setup.driver.onDone = (transfer, nowUs) => {
      before?.(transfer, nowUs);
      if (!mine.has(transfer)) return;
      bytes += transfer.actualLength;
      setup.driver.transport.submit(transfer, nowUs);
    };
    for (const transfer of transfers) setup.driver.submit(transfer);
    return () => {
      const counted = bytes;
      bytes = 0;
      return counted;
    };
  }

  function outTransfers(setup: BareSetup, count: number, length: number): Transfer[] {
    return Array.from({ length: count }, () => setup.driver.out(bulkOut, new Uint8Array(length)));
  }
  function inTransfers(setup: BareSetup, count: number, length: number): Transfer[] {
    return Array.from({ length: count }, () => setup.driver.in(bulkIn, length));
  }

  test.each([
    // Spec 5.1: bytes per millisecond.
    ['full', 1216],
    ['high', 53_248],
    ['super', 450_000],
  ] as const)('at %s speed large transfers OUT reach %i bytes a millisecond', (speed, bytesPerMs) => {
    const setup = new BareSetup(speed);
    const count = saturate(setup, outTransfers(setup, 64, 16_384));
    setup.driver.run(100_000);
    count();
    setup.driver.run(1_000_000);
    expect(count() / 1000 / bytesPerMs).toBeCloseTo(1, 1.5);
  });

  test('at high speed a frame of 1,514 bytes costs three packets, a little less for the short one', () => {
    const setup = new BareSetup('high');
    const count = saturate(setup, outTransfers(setup, 60, 1514));
    setup.driver.run(10_000);
    count();
    setup.driver.run(1_000_000);
    // Spec 5.1: about 34,600 transfers a second.
    const transfersPerSecond = count() / 1514;
    expect(transfersPerSecond).toBeGreaterThan(34_000);
    expect(transfersPerSecond).toBeLessThan(35_600);
  });

  test('at super speed the cost of a transfer shows with small ones', () => {
    const setup = new BareSetup('super', { transferUs: 2 });
    const count = saturate(setup, outTransfers(setup, 300, 1522));
    setup.driver.run(10_000);
    count();
    setup.driver.run(100_000);
    expect(count() / 1522 / 1e5 / (1 / (1522 / 450 + 2))).toBeCloseTo(1, 2);
  });

  test.each(['full', 'high'] as const)('at %s speed both directions share the bus fairly', (speed) => {
    const setup = new BareSetup(speed);
    setup.source.endless = true;
    // Small transfers one way and large ones the other: each has its half all the same.
    const sent = saturate(setup, outTransfers(setup, 64, 1514));
    const received = saturate(setup, inTransfers(setup, 8, 16 * packetBytes[speed]));
    setup.driver.run(200_000);
    sent();
    received();
    setup.driver.run(1_000_000);
    const full = speed === 'full' ? 1_216_000 : 53_248_000;
    expect(received() / full).toBeCloseTo(0.5, 1.5);
    // Short packets cost more than their bytes.
    expect(sent() / full).toBeGreaterThan(0.46);
  });

  test('at super speed the directions do not slow one another down', () => {
    const setup = new BareSetup('super');
    setup.source.endless = true;
    const sent = saturate(setup, outTransfers(setup, 32, 16_384));
    const received = saturate(setup, inTransfers(setup, 32, 16_384));
    setup.driver.run(10_000);
    sent();
    received();
    setup.driver.run(100_000);
    expect(sent() / 45e6).toBeCloseTo(1, 1.5);
    expect(received() / 45e6).toBeCloseTo(1, 1.5);
  });

  test('one direction has the whole bus while the other has nothing to move', () => {
    const setup = new BareSetup('high');
    const sent = saturate(setup, outTransfers(setup, 64, 16_384));
    for (const transfer of inTransfers(setup, 4, 2048)) setup.driver.submit(transfer);
    setup.driver.run(1_000_000);
    expect(sent() / 53_248_000).toBeCloseTo(1, 1.5);
    // The other one had no time for a second; it has no claim to more than its half for that.
    setup.source.endless = true;
    const received = saturate(setup, inTransfers(setup, 8, 2048));
    setup.ready(bulkIn);
    sent();
    setup.driver.run(100_000);
    const share = sent() / 5_324_800;
    expect(share).toBeGreaterThan(0.45);
    expect(share).toBeLessThan(0.55);
    expect(received()).toBeGreaterThan(2_000_000);
  });
});

describe('back-pressure', () => {
  test('a device that takes no more holds the transfer up, not the other direction', () => {
    const setup = new BareSetup('high');
    setup.sink.credit = 1024;
    const transfer = setup.driver.out(bulkOut, pattern(1514));
    setup.driver.submit(transfer);
    setup.give(pattern(10));
    setup.driver.submit(setup.driver.in(bulkIn, 512));
    setup.driver.run(1_000_000);
    expect(setup.driver.reports.map((report) => report.bytes.length)).toEqual([10]);
    expect(setup.sink.unfinishedBytes).toBe(1024);

    setup.sink.credit = 512;
    setup.ready(bulkOut);
    setup.driver.run(1000);
    expect(transfer.status).toBe('completed');
    expect(setup.sink.messages).toEqual([pattern(1514)]);
  });

  test('transfers of one endpoint end in the order of their submission', () => {
    const setup = new BareSetup('super');
    const transfers = [5000, 1, 0, 1024, 16_384, 3].map((length) =>
      setup.driver.out(bulkOut, pattern(length)),
    );
    for (const transfer of transfers) setup.driver.submit(transfer);
    setup.driver.run(10_000);
    expect(setup.driver.reports.map((report) => report.transfer)).toEqual(transfers);
  });
});

describe('reports', () => {
  /** Report times of transfers of 450 bytes (1 us each) that are submitted at the given times. */
  function reportTimes(setup: BareSetup, submitAtUs: readonly number[]): number[] {
    for (const atUs of submitAtUs) {
      setup.driver.clock.runUntil(atUs);
      setup.driver.submit(setup.driver.out(bulkOut, new Uint8Array(450)));
    }
    setup.driver.run(10_000);
    return setup.driver.reports.map((report) => report.atUs);
  }

  test('after a quiet time the interrupt comes at once; the driver hears of it 5 us later', () => {
    const setup = new BareSetup('super', { transferUs: 0 });
    expect(reportTimes(setup, [1000, 2000])).toEqual([1006, 2006]);
  });

  test('what ends within the moderation time is reported together', () => {
    const setup = new BareSetup('super', { transferUs: 0, moderationUs: 40 });
    // The first ends at 1001 and is reported at 1006 with what has ended until then. The next interrupt: 1041.
    expect(reportTimes(setup, [1000, 1003, 1010, 1020, 1030, 1044.5, 1060])).toEqual([
      1006, 1006, 1046, 1046, 1046, 1046, 1086,
    ]);
  });

  test('without moderation each end has its own interrupt', () => {
    const setup = new BareSetup('super', { transferUs: 0, moderationUs: 0 });
    expect(reportTimes(setup, [1000, 1010, 1020])).toEqual([1006, 1016, 1026]);
  });

  test.each([
    ['full', 1000],
    ['high', 125],
    ['super', 40],
  ] as const)('at %s speed batches are %i us apart', (speed, moderationUs) => {
    const setup = new BareSetup(speed);
    setup.driver.onDone = (transfer, nowUs) => setup.driver.transport.submit(transfer, nowUs);
    for (let i = 0; i < 200; i++) setup.driver.submit(setup.driver.out(bulkOut, new Uint8Array(40)));
    setup.driver.run(20 * moderationUs);
    const times = [...new Set(setup.driver.reports.map((report) => report.atUs))];
    expect(times.length).toBeGreaterThan(15);
    for (const [i, atUs] of times.slice(1).entries()) {
      expect(atUs - (times[i] ?? 0)).toBeCloseTo(moderationUs, 6);
    }
  });
});

describe('interrupt endpoint', () => {
  test('is asked at multiples of its interval', () => {
    const setup = new BareSetup('high');
    setup.driver.onDone = (transfer, nowUs) => setup.driver.transport.submit(transfer, nowUs);
    setup.driver.submit(setup.driver.in(interruptIn, 16));
    setup.driver.run(1000);
    setup.interruptSource.messages.push(pattern(8), pattern(16));
    setup.ready(interruptIn);
    setup.driver.run(20_000);
    const ends = setup.driver.reports.map(({ atUs, bytes }) => [atUs, bytes.length]);
    // 2^5 microframes: every 4 ms; the report comes 5 us after. A full packet fills the transfer.
    expect(ends.slice(0, 2)).toEqual([
      [4005, 8],
      [8005, 16],
    ]);
  });

  test('costs nothing while there is nothing to say', () => {
    const setup = new BareSetup('high');
    setup.driver.submit(setup.driver.in(interruptIn, 16));
    setup.driver.run(1000);
    expect(setup.bus.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('faults of a device', () => {
  test('a halted endpoint stalls every transfer until the halt is cleared', () => {
    const setup = new BareSetup('super');
    const { driver } = setup;
    setup.device.injectStall(bulkOut, 0);
    const [a, b, c] = [
      driver.out(bulkOut, pattern(100)),
      driver.out(bulkOut, pattern(100)),
      driver.out(bulkOut, pattern(100)),
    ];
    driver.submit(a);
    driver.submit(b);
    driver.run(1000);
    expect([a.status, b.status]).toEqual(['stall', 'stall']);
    expect(driver.controlIn(0x82, 0, 0, bulkOut, 2).data).toEqual(Uint8Array.of(1, 0));
    expect(driver.clearHalt(bulkOut).status).toBe('completed');
    expect(driver.controlIn(0x82, 0, 0, bulkOut, 2).data).toEqual(Uint8Array.of(0, 0));
    driver.submit(c);
    driver.run(1000);
    expect(c.status).toBe('completed');
    expect(setup.sink.messages).toEqual([pattern(100)]);
  });

  test('a halt hits transfers that wait for the device', () => {
    const setup = new BareSetup('super');
    const transfer = setup.driver.in(bulkIn, 2048);
    setup.driver.submit(transfer);
    setup.driver.run(1000);
    setup.device.injectStall(bulkIn, setup.driver.nowUs);
    setup.driver.run(1000);
    expect(transfer.status).toBe('stall');
  });

  test('an interrupt endpoint can stall as well', () => {
    const setup = new BareSetup('super');
    const transfer = setup.driver.in(interruptIn, 16);
    setup.driver.submit(transfer);
    setup.device.injectStall(interruptIn, setup.driver.nowUs);
    setup.driver.run(10_000);
    expect(setup.driver.reports.map((report) => report.status)).toEqual(['stall']);
  });

  test('silence delays, and loses nothing', () => {
    const setup = new BareSetup('super');
    setup.device.injectSilence(bulkOut, 50_000, 0);
    const transfer = setup.driver.out(bulkOut, pattern(100));
    setup.driver.submit(transfer);
    setup.driver.run(49_999);
    expect(setup.driver.reports).toHaveLength(0);
    setup.driver.run(100);
    expect(setup.sink.messages).toEqual([pattern(100)]);
    expect(setup.driver.reports).toHaveLength(1);
  });

  test('a request to a silent device is answered late, or times out', () => {
    const setup = new BareSetup('super');
    setup.device.injectSilence(0, 100_000, 0);
    expect(setup.driver.controlIn(0x80, 8, 0, 0, 1)).toEqual({ status: 'completed', data: Uint8Array.of(1) });
    expect(setup.driver.nowUs).toBeGreaterThan(100_000);
    setup.device.injectSilence(0, 5_000_000, setup.driver.nowUs);
    const startUs = setup.driver.nowUs;
    const result = setup.driver.request({
      kind: 'control-in',
      requestType: 0x80,
      request: 8,
      value: 0,
      index: 0,
      length: 1,
      timeoutMs: 300,
    });
    expect(result.status).toBe('timed-out');
    expect(setup.driver.nowUs - startUs).toBeLessThan(310_000);
  });

  test('the next request can be stalled', () => {
    const setup = new BareSetup('high');
    setup.device.injectStall(0, 0);
    expect(setup.driver.controlIn(0x80, 8, 0, 0, 1).status).toBe('stall');
    expect(setup.driver.controlIn(0x80, 8, 0, 0, 1).status).toBe('completed');
  });
});

describe('cancel, reset, unplug', () => {
  test('a cancelled transfer says how far it got, and its packets on the wires are lost', () => {
    const setup = new BareSetup('high');
    setup.sink.credit = 512;
    const [a, b] = [setup.driver.out(bulkOut, pattern(1000)), setup.driver.out(bulkOut, pattern(10, 7))];
    setup.driver.submit(a);
    setup.driver.submit(b);
    setup.driver.run(1000);
    setup.driver.cancel(a);
    setup.driver.cancel(a);
    expect(setup.driver.reports).toHaveLength(0);
    setup.sink.credit = 10_000;
    setup.ready(bulkOut);
    setup.driver.run(1000);
    expect(setup.driver.reports.map(({ transfer, status }) => [transfer, status])).toEqual([
      [a, 'cancelled'],
      [b, 'completed'],
    ]);
    expect(a.actualLength).toBe(512);
    // The device can't know: the next transfer goes on with the message.
    expect(setup.sink.messages).toEqual([
      Uint8Array.from([...pattern(1000).subarray(0, 512), ...pattern(10, 7)]),
    ]);
  });

  test('a transfer can be cancelled in the middle of its packets', () => {
    const setup = new BareSetup('full');
    const [a, b] = [setup.driver.out(bulkOut, pattern(1000)), setup.driver.out(bulkOut, pattern(10, 7))];
    setup.driver.submit(a);
    setup.driver.submit(b);
    setup.driver.run(200);
    setup.driver.cancel(a);
    setup.driver.run(10_000);
    expect([a.status, a.actualLength, b.status]).toEqual(['cancelled', 0, 'completed']);
    expect(setup.sink.messages).toEqual([pattern(10, 7)]);
  });

  test('cancelling what has ended changes nothing', () => {
    const setup = new BareSetup('super');
    const transfer = setup.driver.out(bulkOut, pattern(10));
    setup.driver.submit(transfer);
    setup.driver.run(3);
    setup.driver.cancel(transfer);
    setup.driver.run(100);
    setup.driver.cancel(transfer);
    setup.driver.run(100);
    expect(setup.driver.reports.map((report) => report.status)).toEqual(['completed']);
  });

  test('a reset cancels what is out and brings the device back as it was', () => {
    const setup = new BareSetup('super');
    const transfers = [setup.driver.in(bulkIn, 2048), setup.driver.in(interruptIn, 16)];
    for (const transfer of transfers) setup.driver.submit(transfer);
    expect(setup.driver.reset().status).toBe('completed');
    expect(transfers.map((transfer) => transfer.status)).toEqual(['cancelled', 'cancelled']);
    const again = setup.driver.out(bulkOut, pattern(10));
    expect(setup.driver.submit(again)).toBe('ok');
    setup.driver.run(1000);
    expect(again.status).toBe('completed');
  });

  test('an unplug ends everything with "gone", and then says so', () => {
    const setup = new BareSetup('super');
    const { driver } = setup;
    const done = driver.out(bulkOut, pattern(10));
    driver.submit(done);
    driver.run(2);
    const out = [driver.in(bulkIn, 2048), driver.in(bulkIn, 2048), driver.in(interruptIn, 16)];
    for (const transfer of out) driver.submit(transfer);
    driver.transport.request({ kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 1000 }, driver.nowUs);
    setup.bus.unplug(driver.nowUs);
    expect(driver.reports).toHaveLength(0);
    driver.run(0);
    expect(driver.reports.map((report) => report.status)).toEqual(['completed', 'gone', 'gone', 'gone']);
    expect(driver.results.map((result) => result.status)).toEqual(['gone']);
    expect(driver.goneAtUs).toBe(driver.nowUs);
    expect(driver.submit(driver.in(bulkIn, 2048))).toBe('gone');
    expect(driver.clearHalt(bulkIn).status).toBe('gone');
    setup.bus.unplug(driver.nowUs);
    driver.run(10_000);
    expect(driver.reports).toHaveLength(4);
  });

  test('choosing an altsetting again ends what is out on its interface, and no other', () => {
    // Whoever has the bus at that moment: at full speed a turn lasts a millisecond.
    for (let delayUs = 0; delayUs < 3000; delayUs += 250) {
      const setup = new BareSetup('full');
      const mine = setup.driver.out(bulkOut, new Uint8Array(8000));
      const other = setup.driver.out(otherBulkOut, new Uint8Array(8000));
      setup.driver.submit(other);
      setup.driver.submit(mine);
      setup.driver.run(delayUs);
      expect(setup.driver.setInterface(1, 0).status).toBe('completed');
      setup.driver.run(50_000);
      expect([mine.status, mine.actualLength, other.status]).toEqual(['completed', 8000, 'cancelled']);
    }
  });

  test('a second submission of the same transfer is our own fault', () => {
    const setup = new BareSetup('super');
    const transfer = setup.driver.in(bulkIn, 2048);
    setup.driver.submit(transfer);
    expect(() => setup.driver.submit(transfer)).toThrow('submitted twice');
  });
});
