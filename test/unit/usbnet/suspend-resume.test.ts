import { describe, expect, test } from 'vitest';
import { DqlAccountingError } from '../../../src/bql/dql.ts';
import type { AccountingVariant } from '../../../src/usbnet/state.ts';
import { UsbnetBench } from './bench.ts';
import { bulkOut } from './hand-made-device.ts';

const ms = 1000;

/** Open, then put to sleep, with everything back. */
function asleep(variant: AccountingVariant = 'fixed'): UsbnetBench {
  const bench = new UsbnetBench({ variant }).open();
  bench.usbnet.suspend(false, bench.nowUs);
  bench.transport.endCancelled(bench.nowUs);
  bench.poll();
  return bench;
}

describe('suspend', () => {
  test('calls everything back, counts it as completed, and asks for nothing more', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    expect(bench.usbnet.suspend(false, bench.nowUs)).toBe(true);
    expect(bench.transport.cancelled).toHaveLength(1 + 60 + 1);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(1_000_000);
    expect([bench.txQueue.inflightBytes, bench.transport.outstanding.length]).toEqual([0, 0]);
  });

  test('an automatic one is refused while something is being sent', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    expect(bench.usbnet.suspend(true, bench.nowUs)).toBe(false);
    expect(bench.transport.cancelled).toHaveLength(0);
    bench.endAll(bench.tx);
    expect(bench.usbnet.suspend(true, bench.nowUs)).toBe(true);
  });

  test('a packet that comes meanwhile waits: the queue stops, nothing is submitted, nothing is counted', () => {
    const bench = asleep();
    const { submits } = bench.transport;
    bench.send(1522);
    expect([bench.txQueue.driverXoff, bench.txQueue.inflightBytes]).toEqual([true, 0]);
    bench.advance(1_000_000);
    expect([bench.transport.submits, bench.txQueue.driverXoff]).toEqual([submits, true]);
  });
});

describe('resume', () => {
  test('submits what waited, in order, and counts it once', () => {
    const bench = asleep();
    bench.send(1000, 1);
    bench.txQueue.wake(bench.nowUs);
    bench.send(500, 2);
    bench.usbnet.resume(bench.nowUs);
    expect(bench.tx.map(({ length }) => length)).toEqual([1000, 500]);
    expect([bench.txQueue.inflightBytes, bench.txQueue.dql.inflight]).toEqual([1500, 1500]);
    expect(bench.txQueue.driverXoff).toBe(false);
    bench.endAll(bench.tx);
    expect(bench.txQueue.inflightBytes).toBe(0);
    expect(bench.sent.map(({ tag }) => tag)).toEqual([1, 2]);
  });

  test('goes on receiving, and listens for notifications', () => {
    const bench = asleep();
    bench.usbnet.resume(bench.nowUs);
    bench.poll();
    expect([bench.rx.length, bench.interrupt.length]).toEqual([60, 1]);
  });

  test('what the bus does not take is dropped and not counted', () => {
    const bench = asleep();
    bench.send();
    bench.txQueue.wake(bench.nowUs);
    bench.send();
    let submits = 0;
    bench.transport.submitResult = (transfer) => (!transfer.isIn && submits++ === 0 ? 'failed' : 'ok');
    bench.usbnet.resume(bench.nowUs);
    expect([bench.tx.length, bench.txQueue.inflightBytes, bench.usbnet.stats.txDropped]).toEqual([
      1, 1000, 1,
    ]);
    bench.endAll(bench.tx);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('before the suspend’s transfers are back: each still ends once, and all is asked for again', () => {
    const bench = new UsbnetBench().open();
    bench.send(1000);
    bench.usbnet.suspend(false, bench.nowUs);
    bench.send(500);
    bench.usbnet.resume(bench.nowUs);
    bench.poll();
    expect(bench.txQueue.inflightBytes).toBe(1500);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(1 * ms);
    expect([bench.txQueue.inflightBytes, bench.rx.length, bench.interrupt.length]).toEqual([500, 60, 1]);
    bench.endAll(bench.tx);
    expect(bench.txQueue.inflightBytes).toBe(0);
  });

  test('ninety times over', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 90; i++) {
      bench.sendUntilStopped();
      bench.usbnet.suspend(false, bench.nowUs);
      bench.transport.endCancelled(bench.nowUs);
      bench.poll();
      bench.send();
      bench.usbnet.resume(bench.nowUs);
      bench.poll();
      bench.endAll(bench.tx);
    }
    expect([bench.txQueue.inflightBytes, bench.txQueue.stopped, bench.packets.inUse]).toEqual([0, false, 0]);
    expect(bench.usbnet.transfersMade).toBeLessThan(130);
  });
});

describe('what waits for the resume that never comes', () => {
  test('unplugged: it is dropped and was never counted', () => {
    const bench = asleep();
    bench.send();
    bench.transport.unplug(bench.nowUs);
    expect([bench.usbnet.stats.txDropped, bench.txQueue.inflightBytes]).toEqual([1, 0]);
    const outcome = bench.stop();
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.transport.submitsOn(bulkOut).length]).toEqual([true, 0]);
  });

  test('stopped: it is dropped too, and does not go out after the next opening', () => {
    const bench = asleep();
    bench.send();
    const outcome = bench.stop();
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.usbnet.stats.txDropped]).toEqual([true, 1]);
    bench.open();
    bench.usbnet.resume(bench.nowUs);
    bench.poll();
    expect(bench.tx).toHaveLength(0);
    expect(bench.rx).toHaveLength(60);
  });
});

describe('the crash of the second version: resume does not count (spec 2.13, fix 2)', () => {
  function completeAfterResume(variant: AccountingVariant): () => void {
    const bench = asleep(variant);
    bench.send(1522);
    bench.usbnet.resume(bench.nowUs);
    bench.end(bench.tx[0]);
    return () => bench.poll();
  }

  test('no-resume-accounting: the first completion is more than was queued', () => {
    expect(completeAfterResume('no-resume-accounting')).toThrow(DqlAccountingError);
  });

  test('with others in flight it is silent at first, and fails when these are done', () => {
    const bench = asleep('no-resume-accounting');
    bench.send(500);
    bench.usbnet.resume(bench.nowUs);
    bench.send(1000);
    bench.end(bench.tx[0]);
    bench.poll();
    expect(bench.txQueue.inflightBytes).toBe(500);
    bench.end(bench.tx[0]);
    expect(() => bench.poll()).toThrow(DqlAccountingError);
  });

  test('fixed: it is not', () => {
    expect(completeAfterResume('fixed')).not.toThrow();
  });

  test('the other variant’s fault is not this one’s', () => {
    expect(completeAfterResume('early-reset')).not.toThrow();
  });
});
