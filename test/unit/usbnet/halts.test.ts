import { describe, expect, test } from 'vitest';
import { UsbnetBench } from './bench.ts';
import { bulkIn, bulkOut } from './hand-made-device.ts';

const ms = 1000;

describe('a halt of the OUT endpoint', () => {
  /** Four transfers out, of which the second ends with a stall. */
  function halted(): UsbnetBench {
    const bench = new UsbnetBench({ settings: { bql: false } }).open();
    for (let i = 0; i < 4; i++) bench.send(1000, i);
    bench.end(bench.tx[1], 'stall');
    bench.poll();
    return bench;
  }

  test('the others are called back, and only then the halt is cleared', () => {
    const bench = halted();
    expect(bench.transport.cancelled).toHaveLength(3);
    bench.advance(10 * ms);
    expect(bench.transport.pendingRequest).toBeUndefined();
    bench.end(bench.tx[0], 'cancelled');
    bench.end(bench.tx[0], 'completed');
    bench.advance(10 * ms);
    expect(bench.transport.pendingRequest).toBeUndefined();
    bench.end(bench.tx[0], 'stall');
    bench.advance(3 * ms);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkOut });
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('nothing is sent meanwhile; afterwards the queue goes on', () => {
    const bench = halted();
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    expect([bench.txQueue.driverXoff, bench.runs]).toEqual([true, 0]);
    bench.answer('completed');
    expect([bench.txQueue.driverXoff, bench.runs, bench.usbnet.stats.txHalts]).toEqual([false, 1, 1]);
    expect(bench.sent).toHaveLength(4);
  });

  test('more stalls on the way are the same halt', () => {
    const bench = new UsbnetBench({ settings: { bql: false } }).open();
    for (let i = 0; i < 3; i++) bench.send();
    for (const transfer of bench.tx) bench.end(transfer, 'stall');
    bench.advance(3 * ms);
    bench.answer('completed');
    bench.advance(10 * ms);
    // The stalls that were reported while the work waited are dealt with by it, or need one more round at most.
    while (bench.transport.pendingRequest !== undefined) {
      bench.answer('completed');
      bench.advance(10 * ms);
    }
    expect(bench.transport.requests.length).toBeLessThanOrEqual(2);
    expect(bench.txQueue.stopped).toBe(false);
  });

  test.each(['stall', 'completed'] as const)('a clear-halt that ends with "%s" will do', (status) => {
    const bench = halted();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    bench.answer(status);
    expect(bench.txQueue.driverXoff).toBe(false);
  });

  test('one that fails leaves the queue stopped; the watchdog has it tried again', () => {
    const bench = halted();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    bench.answer('timed-out');
    bench.advance(1_000_000);
    expect([bench.txQueue.driverXoff, bench.transport.pendingRequest]).toEqual([true, undefined]);
    bench.usbnet.handleTxTimeout(bench.nowUs);
    bench.poll();
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt' });
    bench.answer('completed');
    expect(bench.txQueue.driverXoff).toBe(false);
    bench.send();
    expect(bench.tx).toHaveLength(1);
  });

  test('transfers that do not come back in five seconds leave the halt as it is', () => {
    const bench = halted();
    bench.advance(6_000_000);
    expect(bench.transport.requests).toEqual([]);
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.transport.endCancelled(bench.nowUs);
    bench.usbnet.handleTxTimeout(bench.nowUs);
    bench.advance(3 * ms);
    bench.answer('completed');
    expect([bench.txQueue.driverXoff, bench.txQueue.inflightBytes]).toEqual([false, 0]);
  });

  test('receiving goes on meanwhile', () => {
    const bench = halted();
    bench.transport.receive(bulkIn, new Uint8Array(60), bench.nowUs);
    bench.poll();
    expect([bench.received.length, bench.rx.length]).toEqual([1, 60]);
  });
});

describe('a halt of the IN endpoint', () => {
  test('the others are called back, the halt is cleared, and it is asked again', () => {
    const bench = new UsbnetBench().open();
    bench.advance(10 * ms);
    expect(bench.rx).toHaveLength(60);
    bench.end(bench.rx[0], 'stall');
    bench.poll();
    expect(bench.transport.cancelled).toHaveLength(59);
    bench.transport.endCancelled(bench.nowUs);
    bench.poll();
    expect(bench.rx).toHaveLength(0);
    bench.advance(3 * ms);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkIn });
    bench.advance(1000 * ms);
    expect(bench.rx).toHaveLength(0);
    bench.answer('completed');
    bench.advance(1 * ms);
    expect([bench.rx.length, bench.usbnet.stats.rxHalts, bench.usbnet.stats.rxErrors]).toEqual([60, 1, 1]);
  });

  test('a submit that finds it halted does the same', () => {
    const bench = new UsbnetBench();
    bench.transport.submitResult = (transfer) => (transfer.isIn ? 'stall' : 'ok');
    bench.open();
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkIn });
    bench.transport.submitResult = () => 'ok';
    bench.answer('completed');
    bench.advance(1 * ms);
    expect(bench.rx).toHaveLength(60);
  });

  test('one that could not be cleared is tried again with the next deferred work', () => {
    const bench = new UsbnetBench().open();
    bench.end(bench.rx[0], 'stall');
    bench.poll();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    bench.answer('timed-out');
    bench.advance(1000 * ms);
    expect(bench.rx).toHaveLength(0);
    bench.usbnet.setRxMode({ promiscuous: false, multicast: false }, bench.nowUs);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkIn });
    bench.answer('completed');
    bench.advance(1 * ms);
    expect(bench.rx).toHaveLength(60);
  });

  test('sending goes on meanwhile', () => {
    const bench = new UsbnetBench().open();
    bench.end(bench.rx[0], 'stall');
    bench.send();
    bench.endAll(bench.tx);
    expect([bench.sent.length, bench.txQueue.stopped]).toEqual([1, false]);
  });
});
