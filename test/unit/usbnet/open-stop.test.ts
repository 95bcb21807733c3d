import { describe, expect, test } from 'vitest';
import { DqlAccountingError } from '../../../src/bql/dql.ts';
import { clearHalt, controlOut, DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { UsbnetBench } from './bench.ts';
import { bulkIn, bulkOut } from './hand-made-device.ts';

const ms = 1000;

describe('open', () => {
  test('asks for frames and for notifications, and lets the queue go', () => {
    const bench = new UsbnetBench();
    bench.txQueue.stop(0);
    bench.open();
    expect([bench.usbnet.isOpen, bench.rx.length, bench.interrupt.length, bench.txQueue.stopped]).toEqual([
      true,
      60,
      1,
      false,
    ]);
    expect(bench.interrupt[0]?.length).toBe(16);
  });

  test('the driver’s reset comes first, then the question whether there is a link', () => {
    const order: string[] = [];
    const bench = new UsbnetBench({
      hooks: {
        *reset(): Procedure<void> {
          order.push('reset');
          yield* controlOut('vendor-device', 1, 0, 0);
        },
        *checkConnect(): Procedure<boolean> {
          order.push('check');
          return (yield* controlOut('vendor-device', 2, 0, 0)) === 'completed';
        },
      },
    });
    const outcome = bench.startOpen();
    bench.answer('completed');
    expect([order, bench.usbnet.isOpen, outcome()]).toEqual([['reset', 'check'], false, undefined]);
    bench.answer('completed');
    expect([outcome()?.ok, bench.usbnet.isOpen]).toEqual([true, true]);
  });

  test.each([
    ['without a link', 'stall'],
    ['without an answer', 'timed-out'],
  ] as const)('%s it fails, and the interface is as it was', (_name, status) => {
    const bench = new UsbnetBench({
      hooks: {
        *checkConnect(): Procedure<boolean> {
          return (yield* controlOut('vendor-device', 2, 0, 0)) === 'completed';
        },
      },
    });
    const outcome = bench.startOpen();
    bench.answer(status);
    const result = outcome();
    expect(result?.ok === false && result.error).toBeInstanceOf(DriverError);
    bench.advance(1_000_000);
    expect([bench.usbnet.isOpen, bench.transport.submits]).toEqual([false, 0]);

    const again = bench.startOpen();
    bench.answer('completed');
    expect(again()?.ok).toBe(true);
  });

  test('a driver whose reset fails is not opened', () => {
    const bench = new UsbnetBench({
      hooks: {
        *reset(): Procedure<void> {
          throw new DriverError('reset the chip', 'it is broken', yield* clearHalt(bulkOut));
        },
      },
    });
    const outcome = bench.startOpen();
    bench.answer('failed');
    expect(outcome()).toMatchObject({ ok: false, error: { stage: 'reset the chip', status: 'failed' } });
    expect(bench.usbnet.isOpen).toBe(false);
  });
});

describe('stop', () => {
  test('calls everything back, waits for the last of it, and only then resets BQL', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    const outcome = bench.stop();
    bench.poll();
    expect([bench.usbnet.isOpen, bench.txQueue.driverXoff]).toEqual([false, true]);
    expect(bench.transport.cancelled).toHaveLength(1 + 60 + 1);
    bench.advance(100 * ms);
    for (const transfer of [...bench.rx, ...bench.interrupt]) bench.end(transfer, 'cancelled');
    bench.advance(100 * ms);
    expect([outcome(), bench.txQueue.inflightBytes]).toEqual([undefined, 1000]);
    bench.end(bench.tx[0], 'cancelled');
    // It is out no more, but BQL has not been told yet.
    expect(bench.txQueue.inflightBytes).toBe(1000);
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.txQueue.inflightBytes]).toEqual([true, 0]);
    expect(bench.txQueue.completions).toEqual([{ bqlBytes: 1000, plainBytes: 0 }]);
    expect(bench.txQueue.dql.numQueued).toBe(0);
  });

  test('what has ended, but was not dealt with yet, is waited for too', () => {
    const bench = new UsbnetBench({ statusEndpoint: false }).open();
    bench.send();
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'cancelled');
    const outcome = bench.stop();
    expect(outcome()).toBeUndefined();
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.txQueue.inflightBytes]).toEqual([true, 0]);
    expect(bench.txQueue.completions).toEqual([{ bqlBytes: 1000, plainBytes: 0 }]);
  });

  test('the interrupt endpoint is waited for too', () => {
    const bench = new UsbnetBench().open();
    const outcome = bench.stop();
    for (const transfer of bench.rx) bench.end(transfer, 'cancelled');
    bench.advance(100 * ms);
    expect(outcome()).toBeUndefined();
    bench.end(bench.interrupt[0], 'cancelled');
    bench.advance(3 * ms);
    expect(outcome()?.ok).toBe(true);
  });

  test('frames that come in while it waits are not asked for again', () => {
    const bench = new UsbnetBench().open();
    bench.stop();
    for (const transfer of bench.rx) bench.end(transfer, 'completed', 60);
    bench.advance(100 * ms);
    expect(bench.rx).toHaveLength(0);
  });

  test('a transfer that never comes back: after five seconds an error, and BQL is left as it is', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    const outcome = bench.stop();
    for (const transfer of [...bench.rx, ...bench.interrupt]) bench.end(transfer, 'cancelled');
    bench.advance(4_900_000);
    expect(outcome()).toBeUndefined();
    bench.advance(200_000);
    const result = outcome();
    expect(result?.ok === false && result.error).toBeInstanceOf(DriverError);
    expect(bench.txQueue.inflightBytes).toBe(1000);

    // It may still come, and then the books are right.
    bench.end(bench.tx[0], 'cancelled');
    bench.advance(3 * ms);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('with a transfer still out the interface cannot be opened again', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    bench.stop();
    for (const transfer of [...bench.rx, ...bench.interrupt]) bench.end(transfer, 'cancelled');
    bench.advance(5_100_000);
    const refused = bench.startOpen();
    expect(refused()?.ok).toBe(false);
    bench.end(bench.tx[0], 'cancelled');
    bench.advance(3 * ms);
    bench.open();
    bench.send();
    bench.endAll(bench.tx);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('an opening that is under way ends first, and does not leave it open', () => {
    const bench = new UsbnetBench({
      hooks: {
        *reset(): Procedure<void> {
          yield* controlOut('vendor-device', 1, 0, 0);
        },
      },
    });
    const opened = bench.startOpen();
    const stopped = bench.stop();
    bench.answer('completed');
    expect(opened()?.ok).toBe(true);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    expect([stopped()?.ok, bench.usbnet.isOpen, bench.transport.outstanding.length]).toEqual([
      true,
      false,
      0,
    ]);
  });

  test('it works again afterwards, as often as one likes', () => {
    const bench = new UsbnetBench();
    for (let round = 0; round < 5; round++) {
      bench.open();
      expect(bench.sendUntilStopped()).toBeGreaterThan(0);
      bench.transport.receive(bulkIn, new Uint8Array(60), bench.nowUs);
      bench.poll();
      const outcome = bench.stop();
      bench.transport.endCancelled(bench.nowUs);
      bench.advance(10 * ms);
      expect(outcome()?.ok).toBe(true);
    }
    expect(bench.received).toHaveLength(5);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('errors of before are forgotten: halts, back-off and all', () => {
    const bench = new UsbnetBench({ settings: { bql: false } }).open();
    bench.send();
    bench.end(bench.tx[0], 'stall');
    bench.end(bench.rx[0], 'stall');
    bench.end(bench.rx[0], 'protocol-error');
    const outcome = bench.stop();
    for (let i = 0; i < 10; i++) {
      bench.transport.endCancelled(bench.nowUs);
      if (bench.transport.pendingRequest !== undefined) bench.answer('timed-out');
      bench.advance(3 * ms);
    }
    expect(outcome()?.ok).toBe(true);
    bench.open();
    expect(bench.rx).toHaveLength(60);
    bench.sendUntilStopped();
    expect(bench.tx).toHaveLength(60);
    bench.endAll(bench.tx);
    expect(bench.txQueue.stopped).toBe(false);
  });
});

describe('the crash of the first version: reset before the transfers are back (spec 2.13, fix 1)', () => {
  function stopWithOneOut(variant: 'early-reset' | 'fixed'): () => void {
    const bench = new UsbnetBench({ variant }).open();
    bench.send(1522);
    bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    return () => bench.advance(10 * ms);
  }

  test('early-reset: more completes than was queued', () => {
    expect(stopWithOneOut('early-reset')).toThrow(DqlAccountingError);
  });

  test('fixed: it does not', () => {
    expect(stopWithOneOut('fixed')).not.toThrow();
  });
});

describe('unplugged', () => {
  test('the carrier goes, and stop succeeds once everything that was out has been reported', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    bench.transport.unplug(bench.nowUs);
    expect(bench.carriers).toEqual([false]);
    const outcome = bench.stop();
    bench.advance(1000 * ms);
    expect(outcome()).toBeUndefined();
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'gone');
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.txQueue.inflightBytes]).toEqual([true, 0]);
  });

  test('the reports may as well come first', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'gone');
    bench.transport.unplug(bench.nowUs);
    const outcome = bench.stop();
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.txQueue.inflightBytes, bench.transport.outstanding.length]).toEqual([
      true,
      0,
      0,
    ]);
  });

  test('nothing is submitted to a device that is gone', () => {
    const bench = new UsbnetBench().open();
    bench.transport.unplug(bench.nowUs);
    const { submits } = bench.transport;
    for (const transfer of [...bench.rx, ...bench.interrupt]) bench.end(transfer, 'gone');
    bench.advance(1_000_000);
    expect([bench.transport.submits, bench.transport.requests.length]).toEqual([submits, 0]);
    bench.send();
    expect([bench.txQueue.inflightBytes, bench.usbnet.stats.txDropped]).toEqual([0, 1]);
  });

  test('while a halt is being cleared', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    bench.end(bench.tx[0], 'stall');
    bench.advance(3 * ms);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt' });
    bench.transport.unplug(bench.nowUs);
    const outcome = bench.stop();
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'gone');
    bench.advance(10 * ms);
    expect(outcome()?.ok).toBe(true);
  });

  test('while it is being stopped', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    const outcome = bench.stop();
    bench.advance(4 * ms);
    bench.transport.unplug(bench.nowUs);
    bench.advance(100 * ms);
    expect(outcome()).toBeUndefined();
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'gone');
    bench.advance(10 * ms);
    expect([outcome()?.ok, bench.txQueue.inflightBytes]).toEqual([true, 0]);
  });

  test('while it is being opened', () => {
    const bench = new UsbnetBench({
      hooks: {
        *checkConnect(): Procedure<boolean> {
          return (yield* controlOut('vendor-device', 2, 0, 0)) === 'completed';
        },
      },
    });
    const outcome = bench.startOpen();
    bench.transport.unplug(bench.nowUs);
    expect(outcome()?.ok).toBe(false);
    expect(bench.transport.submits).toBe(0);
  });
});
