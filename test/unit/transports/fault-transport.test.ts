import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import { InvariantError } from '../../../src/base/errors.ts';
import { FaultTransport } from '../../../src/transports/fault-transport.ts';
import type { FaultRule, TransportFault } from '../../../src/transports/transport-fault.ts';
import type { Transfer, TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest } from '../../../src/usbnet/transport.ts';
import { ManualTransport } from './manual-transport.ts';
import { RecordingHandler } from './recording-handler.ts';

const bulkIn = 0x81;
const bulkOut = 0x02;
const noData = new Uint8Array(0);
const clearHalt: DeviceRequest = { kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 100 };

class Bench {
  readonly inner = new ManualTransport();
  readonly handler = new RecordingHandler();
  readonly transport: FaultTransport;

  constructor(rules: readonly FaultRule[], seed = 1) {
    this.transport = new FaultTransport(this.inner, rules, seed);
    this.transport.setHandler(this.handler);
  }

  transfer(endpointAddress = bulkIn): Transfer {
    const transfer = this.transport.makeTransfer(endpointAddress, 512, 0);
    transfer.length = 512;
    return transfer;
  }

  submitted(endpointAddress = bulkIn): Transfer {
    const transfer = this.transfer(endpointAddress);
    if (this.transport.submit(transfer, 0) !== 'ok') throw new Error('it was not taken');
    return transfer;
  }

  get statuses(): TransferStatus[] {
    return this.handler.ends.map(({ status }) => status);
  }
}

function always(fault: TransportFault): FaultRule[] {
  return [{ fault }];
}

describe('without rules', () => {
  test('everything passes', () => {
    const bench = new Bench([]);
    const transfer = bench.submitted();
    bench.inner.end(transfer, 'completed', 100, 5);
    bench.inner.nextResult = 'no-memory';
    expect(bench.transport.submit(transfer, 6)).toBe('no-memory');
    bench.transport.request(clearHalt, 7);
    bench.inner.answer({ status: 'stall', data: noData }, 8);
    bench.inner.handler?.handleGone(9);
    expect(bench.handler.ends).toEqual([{ transfer, status: 'completed', actualLength: 100, nowUs: 5 }]);
    expect(bench.handler.results).toEqual([{ result: { status: 'stall', data: noData }, nowUs: 8 }]);
    expect(bench.handler.goneAtUs).toEqual([9]);
    expect(bench.transport.pollAtUs()).toBe(neverUs);
  });

  test('an end that comes twice is not passed on', () => {
    const bench = new Bench([]);
    const transfer = bench.submitted();
    bench.inner.end(transfer, 'completed', 1, 1);
    bench.inner.end(transfer, 'completed', 1, 1);
    expect(bench.handler.ends).toHaveLength(1);
    expect(bench.transport.counters.strayEnds).toBe(1);
  });

  test('a transfer that is out cannot be submitted', () => {
    const bench = new Bench([]);
    const transfer = bench.submitted();
    expect(() => bench.transport.submit(transfer, 0)).toThrow(InvariantError);
  });
});

describe('a fault', () => {
  test.each(['stall', 'gone', 'no-memory', 'failed'] as const)('refuse with %s', (result) => {
    const bench = new Bench(always({ kind: 'refuse', result }));
    expect(bench.transport.submit(bench.transfer(), 0)).toBe(result);
    expect(bench.inner.submits).toBe(0);
    expect(bench.transport.outstanding).toBe(0);
  });

  test.each(['stall', 'cancelled', 'protocol-error', 'overflow', 'gone', 'timed-out', 'failed'] as const)(
    'end as %s',
    (status) => {
      const bench = new Bench(always({ kind: 'end', status }));
      bench.inner.end(bench.submitted(), 'completed', 512, 3);
      expect(bench.handler.ends).toMatchObject([{ status, actualLength: 0, nowUs: 3 }]);
    },
  );

  test('end does not hide that the bus itself failed', () => {
    const bench = new Bench(always({ kind: 'end', status: 'timed-out' }));
    bench.inner.end(bench.submitted(), 'cancelled', 0, 3);
    expect(bench.statuses).toEqual(['cancelled']);
  });

  test('truncate', () => {
    const bench = new Bench(always({ kind: 'truncate', bytes: 60 }));
    bench.inner.end(bench.submitted(), 'completed', 512, 1);
    bench.inner.end(bench.submitted(), 'completed', 20, 1);
    expect(bench.handler.ends.map(({ actualLength }) => actualLength)).toEqual([60, 20]);
    expect(bench.statuses).toEqual(['completed', 'completed']);
  });

  test('babble, for IN only', () => {
    const bench = new Bench(always({ kind: 'babble' }));
    bench.inner.end(bench.submitted(bulkIn), 'completed', 10, 1);
    bench.inner.end(bench.submitted(bulkOut), 'completed', 512, 1);
    expect(bench.statuses).toEqual(['overflow', 'completed']);
    expect(bench.handler.ends[0]?.actualLength).toBe(512);
  });

  test('delay: told by poll, and what ends behind it on the same endpoint waits', () => {
    const bench = new Bench([{ endpoint: bulkIn, atTransfer: 1, fault: { kind: 'delay', us: 1000 } }]);
    const late = bench.submitted();
    const behind = bench.submitted();
    const other = bench.submitted(bulkOut);
    bench.inner.end(late, 'completed', 1, 10);
    bench.inner.end(behind, 'completed', 2, 20);
    bench.inner.end(other, 'completed', 3, 30);
    expect(bench.handler.ends.map(({ transfer }) => transfer)).toEqual([other]);
    expect(bench.transport.pollAtUs()).toBe(1010);
    bench.transport.poll(1009);
    expect(bench.handler.ends).toHaveLength(1);
    bench.transport.poll(1010);
    expect(bench.handler.ends.slice(1)).toEqual([
      { transfer: late, status: 'completed', actualLength: 1, nowUs: 1010 },
      { transfer: behind, status: 'completed', actualLength: 2, nowUs: 1010 },
    ]);
  });

  test('delay of a transfer that is cancelled meanwhile: it comes at once, as it ended', () => {
    const bench = new Bench(always({ kind: 'delay', us: 1000 }));
    const transfer = bench.submitted();
    bench.inner.end(transfer, 'completed', 1, 10);
    bench.transport.cancel(transfer, 20);
    expect(bench.handler.ends).toHaveLength(0);
    expect(bench.transport.pollAtUs()).toBe(20);
    bench.transport.poll(20);
    expect(bench.statuses).toEqual(['completed']);
  });

  test('hold: nothing comes until it is released, not even after a cancel', () => {
    const bench = new Bench([{ atTransfer: 1, fault: { kind: 'hold' } }]);
    const held = bench.submitted();
    const behind = bench.submitted();
    bench.inner.end(held, 'completed', 1, 10);
    bench.inner.end(behind, 'completed', 2, 11);
    bench.transport.cancel(held, 12);
    bench.transport.poll(1e12);
    expect(bench.handler.ends).toHaveLength(0);
    expect(bench.transport.pollAtUs()).toBe(neverUs);
    expect(bench.transport.outstanding).toBe(2);
    bench.transport.release(2e12);
    expect(bench.handler.ends).toHaveLength(0);
    bench.transport.poll(2e12);
    expect(bench.handler.ends.map(({ transfer }) => transfer)).toEqual([held, behind]);
  });

  test('halt: the endpoint stalls until its halt is cleared, the others go on', () => {
    const bench = new Bench([{ endpoint: bulkIn, atTransfer: 2, fault: { kind: 'halt' } }]);
    const queued = bench.submitted();
    bench.submitted();
    const after = bench.submitted();
    const other = bench.submitted(bulkOut);
    expect(bench.handler.ends).toHaveLength(0);
    bench.inner.endCancelled(1);
    bench.transport.poll(1);
    expect(bench.statuses).toEqual(['stall', 'stall', 'stall']);
    expect(bench.handler.ends.map(({ transfer }) => transfer)).toContain(queued);
    bench.inner.end(other, 'completed', 1, 2);

    // A halt that could not be cleared stays.
    bench.transport.request(clearHalt, 3);
    bench.inner.answer({ status: 'failed', data: noData }, 4);
    bench.transport.submit(after, 5);
    bench.transport.poll(5);
    expect(bench.statuses).toEqual(['stall', 'stall', 'stall', 'completed', 'stall']);
    bench.transport.request(clearHalt, 6);
    bench.inner.answer({ status: 'completed', data: noData }, 7);
    bench.transport.submit(after, 8);
    bench.inner.end(after, 'completed', 9, 9);
    expect(bench.statuses.at(-1)).toBe('completed');
    expect(bench.transport.counters.struck.halt).toBe(1);
  });

  test("halt does not call the driver's own cancel a stall", () => {
    const bench = new Bench([{ endpoint: bulkOut, fault: { kind: 'halt' } }]);
    const transfer = bench.submitted();
    bench.submitted(bulkOut);
    bench.transport.cancel(transfer, 1);
    bench.inner.endCancelled(2);
    expect(bench.statuses).toEqual(['cancelled']);
  });

  test('vanish: all that is out ends, told once, nothing is taken any more', () => {
    const bench = new Bench([{ atTransfer: 3, fault: { kind: 'vanish' } }]);
    bench.submitted();
    bench.submitted(bulkOut);
    const last = bench.submitted();
    expect(bench.handler.goneAtUs).toHaveLength(0);
    expect(bench.transport.submit(bench.transfer(), 1)).toBe('gone');
    bench.transport.request(clearHalt, 1);
    bench.transport.poll(2);
    bench.inner.endCancelled(3);
    expect(bench.statuses).toEqual(['gone', 'gone', 'gone']);
    expect(bench.handler.ends[0]?.transfer).toBe(last);
    expect(bench.handler.goneAtUs).toEqual([2]);
    expect(bench.handler.results[0]?.result.status).toBe('gone');
    bench.inner.handler?.handleGone(4);
    bench.transport.vanish(5);
    bench.transport.poll(6);
    expect(bench.handler.goneAtUs).toEqual([2]);
    expect(bench.transport.outstanding).toBe(0);
  });
});

describe('requests', () => {
  test('are struck by rules for endpoint 0 alone', () => {
    const bench = new Bench([
      { fault: { kind: 'refuse', result: 'failed' } },
      { endpoint: 0, atTransfer: 1, fault: { kind: 'end', status: 'timed-out' } },
      { endpoint: 0, atTransfer: 2, fault: { kind: 'delay', us: 50 } },
    ]);
    bench.transport.request(clearHalt, 1);
    expect(bench.handler.results).toHaveLength(0);
    bench.transport.poll(1);
    expect(bench.handler.results[0]?.result.status).toBe('timed-out');
    expect(bench.inner.requests).toHaveLength(0);
    bench.transport.request(clearHalt, 2);
    bench.inner.answer({ status: 'completed', data: noData }, 3);
    expect(bench.transport.pollAtUs()).toBe(53);
    bench.transport.poll(53);
    expect(bench.handler.results[1]).toEqual({ result: { status: 'completed', data: noData }, nowUs: 53 });
  });

  test('that are held are answered on release', () => {
    const bench = new Bench([{ endpoint: 0, fault: { kind: 'hold' } }]);
    bench.transport.request(clearHalt, 2);
    bench.inner.answer({ status: 'completed', data: noData }, 3);
    bench.transport.poll(1e9);
    expect(bench.handler.results).toHaveLength(0);
    bench.transport.release(1e9);
    bench.transport.poll(1e9);
    expect(bench.handler.results).toHaveLength(1);
  });

  test('under way while the device vanishes are answered as gone', () => {
    const bench = new Bench([]);
    bench.transport.request(clearHalt, 2);
    bench.transport.vanish(3);
    bench.inner.answer({ status: 'completed', data: noData }, 4);
    expect(bench.handler.results[0]?.result.status).toBe('gone');
  });
});

describe('rules', () => {
  test('strike the n-th, at most so often, and the first one counts', () => {
    const bench = new Bench([
      { atTransfer: 2, fault: { kind: 'refuse', result: 'stall' } },
      { times: 2, fault: { kind: 'refuse', result: 'failed' } },
    ]);
    const results = Array.from({ length: 5 }, () => bench.transport.submit(bench.transfer(), 0));
    expect(results).toEqual(['failed', 'stall', 'failed', 'ok', 'ok']);
    expect(bench.transport.counters.struck.refuse).toBe(3);
  });

  test('with a probability strike about that often, and the same ones for the same seed', () => {
    const run = (seed: number): string[] => {
      const bench = new Bench([{ probability: 0.1, fault: { kind: 'refuse', result: 'failed' } }], seed);
      return Array.from({ length: 5000 }, () => bench.transport.submit(bench.transfer(), 0));
    };
    const first = run(7);
    const failed = first.filter((result) => result === 'failed').length;
    expect(failed).toBeGreaterThan(400);
    expect(failed).toBeLessThan(600);
    expect(run(7)).toEqual(first);
    expect(run(8)).not.toEqual(first);
  });
});

describe('stick', () => {
  const setInterface: DeviceRequest = {
    kind: 'set-interface',
    interfaceNumber: 1,
    alternateSetting: 1,
    timeoutMs: 100,
  };
  const reset: DeviceRequest = { kind: 'reset', timeoutMs: 100 };

  test('nothing of the endpoint ends unless it is cancelled; others go on', () => {
    const bench = new Bench([{ endpoint: bulkIn, times: 1, fault: { kind: 'stick', until: 'never' } }]);
    const [first] = [bench.submitted(), bench.submitted()];
    bench.inner.end(bench.submitted(bulkOut), 'completed', 512, 1);
    bench.transport.poll(1000);
    expect(bench.statuses).toEqual(['completed']);
    bench.transport.cancel(first, 1000);
    bench.transport.poll(1000);
    expect(bench.statuses).toEqual(['completed', 'cancelled']);
    expect(bench.transport.outstanding).toBe(1);
  });

  test.each([
    ['clear-halt', clearHalt, true],
    ['clear-halt', setInterface, true],
    ['set-interface', clearHalt, false],
    ['set-interface', reset, true],
    ['reset', setInterface, false],
    ['never', reset, false],
  ] as const)('until %s: %o', (until, request, isCured) => {
    const bench = new Bench([{ endpoint: bulkIn, times: 1, fault: { kind: 'stick', until } }]);
    bench.transport.cancel(bench.submitted(), 0);
    bench.transport.poll(0);
    bench.transport.request(request, 1);
    bench.inner.answer({ status: 'completed', data: noData }, 1);
    bench.submitted();
    expect(bench.inner.submits).toBe(isCured ? 1 : 0);
  });

  test('unplugged: all of it is gone', () => {
    const bench = new Bench(always({ kind: 'stick', until: 'reset' }));
    bench.submitted();
    bench.submitted(bulkOut);
    bench.transport.vanish(5);
    bench.transport.poll(5);
    expect(bench.statuses).toEqual(['gone', 'gone']);
  });
});

describe('duplicate', () => {
  test('OUT: the device gets it twice, and one end is told', () => {
    const bench = new Bench([{ endpoint: bulkOut, times: 1, fault: { kind: 'duplicate' } }]);
    const transfer = bench.submitted(bulkOut);
    expect(bench.inner.submits).toBe(2);
    for (const one of bench.inner.out.slice()) bench.inner.end(one, 'completed', 512, 1);
    expect(bench.handler.ends.map((end) => end.transfer)).toEqual([transfer]);
    expect(bench.transport.counters.strayEnds).toBe(0);
  });

  test('IN: the next one brings the same bytes', () => {
    const bench = new Bench([{ endpoint: bulkIn, times: 1, fault: { kind: 'duplicate' } }]);
    const first = bench.submitted();
    first.buffer.set([1, 2, 3]);
    bench.inner.end(first, 'completed', 3, 1);
    const second = bench.submitted();
    second.buffer.set([9, 9, 9, 9]);
    bench.inner.end(second, 'completed', 4, 2);
    expect([second.actualLength, ...second.buffer.subarray(0, 3)]).toEqual([3, 1, 2, 3]);
  });
});

test('a rule that is added later', () => {
  const bench = new Bench([]);
  bench.inner.end(bench.submitted(), 'completed', 1, 1);
  bench.transport.arm({ endpoint: bulkIn, times: 1, fault: { kind: 'end', status: 'failed' } });
  for (let i = 0; i < 2; i++) bench.inner.end(bench.submitted(), 'completed', 1, 1);
  expect(bench.statuses).toEqual(['completed', 'failed', 'completed']);
});

test('whatever the rules, each transfer that was taken ends exactly once, and never inside a submit', () => {
  const fault: fc.Arbitrary<TransportFault> = fc.oneof(
    fc.constant<TransportFault>({ kind: 'refuse', result: 'no-memory' }),
    fc.constant<TransportFault>({ kind: 'end', status: 'protocol-error' }),
    fc.record({ kind: fc.constant('delay' as const), us: fc.nat(50) }),
    fc.record({ kind: fc.constant('truncate' as const), bytes: fc.nat(512) }),
    fc.constant<TransportFault>({ kind: 'babble' }),
    fc.constant<TransportFault>({ kind: 'hold' }),
    fc.constant<TransportFault>({ kind: 'halt' }),
    fc.constant<TransportFault>({ kind: 'stick', until: 'cancel' }),
    fc.constant<TransportFault>({ kind: 'stick', until: 'never' }),
    fc.constant<TransportFault>({ kind: 'duplicate' }),
    fc.constant<TransportFault>({ kind: 'vanish' }),
  );
  const rule: fc.Arbitrary<FaultRule> = fc.record(
    {
      endpoint: fc.constantFrom(bulkIn, bulkOut),
      atTransfer: fc.integer({ min: 1, max: 10 }),
      probability: fc.double({ min: 0, max: 1, noNaN: true }),
      times: fc.nat(3),
      fault,
    },
    { requiredKeys: ['fault'] },
  );
  const step = fc.record({
    action: fc.constantFrom('submit', 'end', 'cancel', 'end-cancelled', 'poll'),
    pick: fc.nat(5),
    advanceUs: fc.nat(20),
  });
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 4 }),
      fc.array(step, { maxLength: 80 }),
      fc.nat(),
      (rules, steps, seed) => {
        const bench = new Bench(rules, seed);
        const pool = Array.from({ length: 6 }, (_, i) => bench.transfer(i % 2 === 0 ? bulkIn : bulkOut));
        const out = new Set<Transfer>();
        let inside = false;
        let taken = 0;
        let nowUs = 0;
        bench.handler.onEnd = (transfer) => {
          if (inside) throw new Error('reported from inside a submit');
          if (!out.delete(transfer)) throw new Error('reported twice');
        };
        for (const { action, pick, advanceUs } of steps) {
          nowUs += advanceUs;
          const transfer = pool[pick];
          if (transfer === undefined) continue;
          if (action === 'submit' && !out.has(transfer)) {
            inside = true;
            if (bench.transport.submit(transfer, nowUs) === 'ok') {
              out.add(transfer);
              taken++;
            }
            inside = false;
          } else if (action === 'end' && bench.inner.out.length > 0) {
            const ended = bench.inner.out[pick % bench.inner.out.length];
            if (ended !== undefined) bench.inner.end(ended, 'completed', 512, nowUs);
          } else if (action === 'cancel') bench.transport.cancel(transfer, nowUs);
          else if (action === 'end-cancelled') {
            const cancelled = bench.inner.cancelled.splice(0).filter((one) => bench.inner.out.includes(one));
            for (const one of new Set(cancelled)) bench.inner.end(one, 'cancelled', 0, nowUs);
          } else if (action === 'poll') bench.transport.poll(nowUs);
        }
        for (const transfer of pool) bench.transport.cancel(transfer, nowUs);
        for (const ended of bench.inner.out.slice()) bench.inner.end(ended, 'cancelled', 0, nowUs);
        bench.transport.release(nowUs);
        bench.transport.poll(nowUs + 1000);
        expect(out.size).toBe(0);
        expect(bench.handler.ends).toHaveLength(taken);
        expect(bench.transport.outstanding).toBe(0);
        expect(bench.transport.counters.strayEnds).toBe(0);
        expect(bench.handler.goneAtUs.length).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: 1000 },
  );
});
