import { describe, expect, test } from 'vitest';
import { bulkOut } from './hand-made-device.ts';
import { UsbnetBench } from './bench.ts';

const ms = 1000;
const off = { settings: { bql: false } };

describe('from packet to transfer', () => {
  test('a frame is submitted, counted, and reported when it is done', () => {
    const bench = new UsbnetBench().open();
    bench.nowUs = 100;
    bench.send(1000, 42);
    expect(bench.tx).toHaveLength(1);
    expect(bench.txQueue.inflightBytes).toBe(1000);
    expect(bench.txQueue.transStartUs).toBe(100);
    expect(bench.packets.inUse).toBe(0);
    bench.nowUs = 700;
    bench.end(bench.tx[0]);
    // Nothing is told before the completion half runs.
    expect([bench.sent.length, bench.txQueue.inflightBytes]).toEqual([0, 1000]);
    bench.nowUs = 750;
    bench.poll();
    expect(bench.sent).toEqual([{ tag: 42, handedOverAtUs: 100, completedAtUs: 700, ok: true }]);
    expect(bench.txQueue.inflightBytes).toBe(0);
    expect(bench.usbnet.stats).toMatchObject({ txPackets: 1, txBytes: 1000, txErrors: 0, txDropped: 0 });
  });

  test('the driver’s queue stops at TX_QLEN transfers, and goes on one below it', () => {
    const bench = new UsbnetBench(off).open();
    expect(bench.usbnet.txQlen).toBe(60);
    expect(bench.sendUntilStopped()).toBe(60);
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.end(bench.tx[0]);
    bench.poll();
    expect([bench.txQueue.stopped, bench.runs, bench.tx.length]).toEqual([false, 1, 59]);
    expect(bench.sendUntilStopped()).toBe(1);
  });

  test('no more transfers are made than can be out at once', () => {
    const bench = new UsbnetBench(off).open();
    for (let i = 0; i < 20; i++) {
      bench.sendUntilStopped();
      bench.endAll(bench.tx);
    }
    expect(bench.usbnet.transfersMade).toBe(60 + 60);
  });

  test('the transfers of one run of the completion half are told to BQL as one sum', () => {
    const bench = new UsbnetBench({ settings: { limitMinBytes: 100_000 } }).open();
    bench.send(1);
    bench.endAll(bench.tx);
    bench.txQueue.completions.length = 0;
    for (let i = 1; i <= 10; i++) bench.send(100 * i);
    for (const transfer of bench.tx.slice(0, 7)) bench.end(transfer);
    bench.poll();
    bench.endAll(bench.tx);
    expect(bench.txQueue.completions).toEqual([
      { bqlBytes: 2800, plainBytes: 0 },
      { bqlBytes: 2700, plainBytes: 0 },
    ]);
  });

  test('transfers may end in any order', () => {
    const bench = new UsbnetBench(off).open();
    for (let i = 1; i <= 5; i++) bench.send(100 * i, i);
    for (const index of [3, 0, 4, 2, 1]) {
      const transfer = bench.transport.submitsOn(bulkOut)[index]?.transfer;
      bench.end(transfer);
      bench.poll();
    }
    expect(bench.sent.map(({ tag }) => tag)).toEqual([4, 1, 5, 3, 2]);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('BQL switched while transfers are out: each completes as it was counted', () => {
    const bench = new UsbnetBench({ settings: { limitMinBytes: 100_000 } }).open();
    bench.send(1000);
    bench.txQueue.configure({ bql: false, limitMinBytes: 0, limitMaxBytes: 1e9, holdTimeMs: 1000 }, 0);
    bench.send(500);
    expect(bench.txQueue.inflightBytes).toBe(1500);
    bench.endAll(bench.tx);
    expect(bench.txQueue.completions).toEqual([{ bqlBytes: 1000, plainBytes: 500 }]);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });
});

describe('transfers that end on a packet boundary (spec 2.4, step 5)', () => {
  // Bytes on the bus, and what BQL counts, for 1024 and 1025 bytes from the driver.
  test.each([
    ['send a zero-length packet', { sendZlp: true }, 1024, true, 1025, false],
    ['pad by one byte', {}, 1025, false, 1025, false],
    ['are the driver’s own business if it packs', { multiPacket: true }, 1024, false, 1025, false],
    ['a zero-length packet comes first', { sendZlp: true, multiPacket: true }, 1024, true, 1025, false],
  ])('%s', (_name, flags, lengthAtBoundary, zlpAtBoundary, lengthBeyond, zlpBeyond) => {
    for (const [frame, length, zeroPacket] of [
      [1024, lengthAtBoundary, zlpAtBoundary],
      [1025, lengthBeyond, zlpBeyond],
    ] as const) {
      const bench = new UsbnetBench(flags).open();
      bench.send(frame);
      if ('multiPacket' in flags) bench.usbnet.endOfBurst(0);
      const [submit] = bench.transport.submitsOn(bulkOut);
      expect(submit).toMatchObject({ length, zeroPacket });
      expect(submit?.bytes.subarray(0, frame).every((byte) => byte === 0xa5)).toBe(true);
      expect([...(submit?.bytes.subarray(frame) ?? [])]).toEqual(length > frame ? [0] : []);
      expect(bench.txQueue.inflightBytes).toBe(length);
      bench.endAll(bench.tx);
      expect(bench.txQueue.completions).toEqual([{ bqlBytes: length, plainBytes: 0 }]);
    }
  });

  test.each([
    ['full', 64],
    ['high', 512],
    ['super', 1024],
  ] as const)('at %s speed the packet has %i bytes', (speed, packet) => {
    const bench = new UsbnetBench({ speed }).open();
    bench.send(packet);
    bench.send(packet - 1);
    bench.send(2 * packet);
    const lengths = bench.transport.submitsOn(bulkOut).map(({ length }) => length);
    expect(lengths).toEqual([packet + 1, packet - 1, 2 * packet + 1]);
  });

  test('it is the packet size of the OUT endpoint that counts', () => {
    const bench = new UsbnetBench({ maxPacketOut: 512, maxPacketIn: 1024 }).open();
    bench.send(512);
    expect(bench.transport.submitsOn(bulkOut)[0]?.length).toBe(513);
  });
});

describe('what is not counted', () => {
  test.each(['gone', 'no-memory', 'failed'] as const)('a submit that answers "%s": dropped', (result) => {
    const bench = new UsbnetBench().open();
    bench.transport.submitResult = () => result;
    bench.send();
    expect([bench.txQueue.inflightBytes, bench.txQueue.stopped]).toEqual([0, false]);
    expect([bench.usbnet.stats.txDropped, bench.packets.inUse]).toEqual([1, 0]);
    bench.transport.submitResult = () => 'ok';
    bench.send();
    expect(bench.txQueue.inflightBytes).toBe(1000);
  });

  test('a submit that finds the endpoint halted: dropped, and the queue stands until the halt is cleared', () => {
    const bench = new UsbnetBench().open();
    bench.transport.submitResult = () => 'stall';
    bench.send();
    expect([bench.txQueue.inflightBytes, bench.txQueue.driverXoff]).toEqual([0, true]);
    expect(bench.usbnet.stats.txDropped).toBe(1);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkOut });
    bench.transport.submitResult = () => 'ok';
    bench.answer('completed');
    expect(bench.txQueue.stopped).toBe(false);
  });

  test('a transfer that the driver gives without a packet while the driver’s queue is stopped: dropped', () => {
    let flushAtUs = 400;
    const bench = new UsbnetBench({
      multiPacket: true,
      hooks: { flushAtUs: () => flushAtUs, flushDue: () => ((flushAtUs = Number.POSITIVE_INFINITY), true) },
    }).open();
    bench.send(1000);
    expect(bench.tx).toHaveLength(0);
    bench.txQueue.stop(0);
    bench.advance(1 * ms);
    expect([bench.tx.length, bench.usbnet.stats.txDropped, bench.txQueue.inflightBytes]).toEqual([0, 1, 0]);
    bench.txQueue.wake(bench.nowUs);
    bench.send(500);
    flushAtUs = bench.nowUs;
    bench.poll();
    expect(bench.tx).toHaveLength(1);
  });

  test('BQL alone does not hold back what the driver flushes on its own', () => {
    let flushAtUs = 400;
    const bench = new UsbnetBench({
      multiPacket: true,
      hooks: { flushAtUs: () => flushAtUs, flushDue: () => ((flushAtUs = Number.POSITIVE_INFINITY), true) },
    }).open();
    bench.send(1000);
    bench.advance(400);
    expect([bench.tx.length, bench.txQueue.stackXoff]).toEqual([1, true]);
    bench.send(1000);
    flushAtUs = bench.nowUs;
    bench.poll();
    expect(bench.tx).toHaveLength(2);
  });

  test('a packet for which the driver makes no transfer: dropped, unless it packs and has taken it in', () => {
    const plain = new UsbnetBench({ hooks: { txFixup: (packet) => (packet?.release(), undefined) } }).open();
    plain.send();
    expect([plain.usbnet.stats.txDropped, plain.packets.inUse]).toEqual([1, 0]);

    const packing = new UsbnetBench({ multiPacket: true }).open();
    packing.send();
    expect([packing.usbnet.stats.txDropped, packing.tx.length, packing.txQueue.inflightBytes]).toEqual([
      0, 0, 0,
    ]);
  });
});

describe('a driver that packs', () => {
  test('the end of a burst sends what it has; nothing is sent when it has nothing', () => {
    const bench = new UsbnetBench({ multiPacket: true }).open();
    bench.usbnet.endOfBurst(0);
    expect(bench.tx).toHaveLength(0);
    for (let i = 1; i <= 3; i++) bench.send(100, i);
    bench.usbnet.endOfBurst(0);
    expect(bench.tx.map(({ length }) => length)).toEqual([300]);
    bench.endAll(bench.tx);
    expect(bench.sent.map(({ tag }) => tag)).toEqual([1, 2, 3]);
    expect(bench.usbnet.stats).toMatchObject({ txPackets: 3, txBytes: 300, txTransfers: 1 });
  });

  test('while it has stopped the queue it keeps what it has, since more will come', () => {
    const bench = new UsbnetBench({ multiPacket: true }).open();
    bench.send(100);
    bench.txQueue.stop(0);
    bench.usbnet.endOfBurst(0);
    bench.advance(10 * ms);
    expect(bench.tx).toHaveLength(0);
    bench.txQueue.wake(0);
    bench.usbnet.endOfBurst(0);
    expect(bench.tx).toHaveLength(1);
  });

  test('while BQL has stopped the queue, what it has waits 1.2 ms for company, and goes (spec 2.13.1)', () => {
    const bench = new UsbnetBench({ multiPacket: true }).open();
    bench.send(100);
    bench.usbnet.endOfBurst(0);
    expect([bench.tx.length, bench.txQueue.stackXoff]).toEqual([1, true]);
    bench.send(200);
    bench.usbnet.endOfBurst(0);
    bench.advance(1.1 * ms);
    expect(bench.tx).toHaveLength(1);
    bench.advance(0.1 * ms);
    expect(bench.tx.map(({ length }) => length)).toEqual([100, 200]);
    expect(bench.txQueue.inflightBytes).toBe(300);
  });

  test('what BQL kept goes along with the next packet, if that comes first', () => {
    const bench = new UsbnetBench({ multiPacket: true }).open();
    bench.send(100);
    bench.usbnet.endOfBurst(0);
    bench.send(200);
    bench.usbnet.endOfBurst(0);
    bench.endAll(bench.tx);
    bench.send(300);
    bench.usbnet.endOfBurst(0);
    expect(bench.tx.map(({ length }) => length)).toEqual([500]);
    bench.advance(10 * ms);
    expect(bench.transport.submitsOn(bulkOut)).toHaveLength(2);
  });

  test('what it has when the interface is stopped never goes out', () => {
    const bench = new UsbnetBench({ multiPacket: true }).open();
    bench.send(100);
    const outcome = bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    expect([outcome()?.ok, bench.binding.driver.dropped, bench.transport.submitsOn(bulkOut).length]).toEqual([
      true,
      1,
      0,
    ]);
  });
});

describe('how a transfer can end (spec 2.5)', () => {
  test.each([
    ['completed', { txPackets: 1, txErrors: 0 }],
    ['cancelled', { txPackets: 0, txErrors: 1 }],
    ['gone', { txPackets: 0, txErrors: 1 }],
    ['overflow', { txPackets: 0, txErrors: 1 }],
    ['timed-out', { txPackets: 0, txErrors: 1 }],
    ['failed', { txPackets: 0, txErrors: 1 }],
  ] as const)('%s: completed for BQL, whatever else', (status, counters) => {
    const bench = new UsbnetBench().open();
    bench.send(1000, 9);
    bench.end(bench.tx[0], status);
    bench.poll();
    expect(bench.txQueue.completions).toEqual([{ bqlBytes: 1000, plainBytes: 0 }]);
    expect(bench.sent).toMatchObject([{ tag: 9, ok: status === 'completed' }]);
    expect(bench.usbnet.stats).toMatchObject(counters);
    expect(bench.txQueue.stopped).toBe(false);
    if (status !== 'completed') expect(bench.usbnet.stats.txTransferErrors[status]).toBe(1);
  });

  test('a protocol error stops the queue for 125 ms', () => {
    const bench = new UsbnetBench(off).open();
    bench.send();
    bench.end(bench.tx[0], 'protocol-error');
    bench.poll();
    expect([bench.txQueue.driverXoff, bench.usbnet.stats.throttles]).toEqual([true, 1]);
    expect(bench.txQueue.inflightBytes).toBe(0);
    bench.advance(124_999);
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.advance(1);
    expect([bench.txQueue.driverXoff, bench.runs]).toEqual([false, 1]);
  });

  test('more protocol errors meanwhile do not prolong it', () => {
    const bench = new UsbnetBench(off).open();
    bench.send();
    bench.send();
    bench.end(bench.tx[0], 'protocol-error');
    bench.advance(100 * ms);
    bench.end(bench.tx[0], 'protocol-error');
    bench.advance(25 * ms);
    expect([bench.txQueue.driverXoff, bench.usbnet.stats.throttles]).toEqual([false, 1]);
  });

  test('cancelled for a timeout: counted as completed, so that the queue recovers', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    expect(bench.txQueue.stackXoff).toBe(true);
    bench.advance(5_000_000);
    bench.usbnet.handleTxTimeout(bench.nowUs);
    expect([bench.usbnet.stats.txTimeouts, bench.binding.driver.recovered]).toEqual([1, 1]);
    expect(bench.transport.cancelled).toHaveLength(1);
    bench.transport.endCancelled(bench.nowUs);
    bench.poll();
    expect([bench.txQueue.stopped, bench.txQueue.inflightBytes]).toEqual([false, 0]);
  });
});
