import { describe, expect, test } from 'vitest';
import { setInterface } from '../../../src/usbnet/procedure.ts';
import type { InterfaceStep } from '../../../src/usbnet/recovery-procedures.ts';
import type { Outcome } from '../../../src/usbnet/usbnet.ts';
import { UsbnetBench } from './bench.ts';
import { bulkIn, bulkOut } from './hand-made-device.ts';

const ms = 1000;

/** An interface with four transfers out each way, and a step that was just begun. */
function begin(step: InterfaceStep): {
  readonly bench: UsbnetBench;
  readonly outcome: () => Outcome | undefined;
} {
  const bench = new UsbnetBench().open();
  for (let i = 0; i < 4; i++) bench.send(1000, i);
  let outcome: Outcome | undefined;
  bench.usbnet.recover(step, bench.nowUs, (result) => {
    outcome = result;
  });
  bench.poll();
  return { bench, outcome: () => outcome };
}

describe('any step', () => {
  test.each(['resubmit', 'clear-halt', 'reselect'] as const)(
    '"%s": cancels all, asks for nothing meanwhile, and goes on both ways',
    (step) => {
      const { bench, outcome } = begin(step);
      expect(bench.transport.cancelled).toEqual([...bench.rx, ...bench.tx]);
      expect(bench.txQueue.driverXoff).toBe(true);
      bench.transport.endCancelled(bench.nowUs);
      bench.poll();
      expect([bench.tx.length, bench.rx.length]).toEqual([0, 0]);
      expect(bench.txQueue.inflightBytes).toBe(0);
      bench.advance(3 * ms);
      while (bench.transport.pendingRequest !== undefined) bench.answer('completed');
      bench.poll();
      expect(outcome()).toEqual({ ok: true, value: undefined });
      expect(bench.rx.length).toBe(bench.usbnet.rxQlen);
      expect(bench.txQueue.driverXoff).toBe(false);
      bench.send();
      bench.endAll(bench.tx);
      expect(bench.txQueue.inflightBytes).toBe(0);
    },
  );

  test('fails in time if transfers do not come back, and leaves them counted', () => {
    const { bench, outcome } = begin('resubmit');
    bench.advance(6_000_000);
    expect(outcome()?.ok).toBe(false);
    expect(bench.txQueue.inflightBytes).toBeGreaterThan(0);
  });

  test('ends when the device is unplugged, and asks for nothing more', () => {
    const { bench, outcome } = begin('clear-halt');
    bench.transport.unplug(bench.nowUs);
    for (const transfer of bench.transport.outstanding) bench.end(transfer, 'gone');
    bench.advance(10 * ms);
    expect(outcome()?.ok).toBe(false);
    expect([bench.rx.length, bench.transport.pendingRequest]).toEqual([0, undefined]);
  });

  test('leaves a halt that is reported meanwhile to be cleared', () => {
    const { bench } = begin('resubmit');
    const [first] = bench.tx;
    bench.end(first, 'stall');
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: bulkOut });
    bench.answer('completed');
    expect(bench.txQueue.driverXoff).toBe(false);
  });
});

test('clear-halt: both bulk endpoints', () => {
  const { bench, outcome } = begin('clear-halt');
  bench.transport.endCancelled(bench.nowUs);
  bench.advance(3 * ms);
  bench.answer('completed');
  bench.answer('stall');
  expect(bench.transport.requests).toMatchObject([
    { kind: 'clear-halt', endpointAddress: bulkIn },
    { kind: 'clear-halt', endpointAddress: bulkOut },
  ]);
  // A refusal is an answer too.
  expect(outcome()?.ok).toBe(true);
});

test('a device that does not answer: the step has failed', () => {
  const { bench, outcome } = begin('clear-halt');
  bench.transport.endCancelled(bench.nowUs);
  bench.advance(3 * ms);
  bench.answer('timed-out');
  expect(outcome()?.ok).toBe(false);
});

describe('reselect', () => {
  test('chooses the altsetting that has the endpoints', () => {
    const { bench } = begin('reselect');
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'set-interface', alternateSetting: 1 });
  });

  test('is the driver’s own business where it says so', () => {
    let asked = 0;
    const bench = new UsbnetBench({
      hooks: {
        *reselect() {
          asked++;
          yield* setInterface(1, 0);
        },
      },
    }).open();
    bench.usbnet.recover('reselect', bench.nowUs, () => {});
    bench.poll();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    expect(asked).toBe(1);
    expect(bench.transport.requests).toMatchObject([{ kind: 'set-interface', alternateSetting: 0 }]);
  });
});
