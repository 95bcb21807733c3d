import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DqlAccountingError } from '../../../src/bql/dql.ts';
import { defaultTxQueueSettings, TxQueue, type TxQueueSettings } from '../../../src/bql/tx-queue.ts';

const frame = 1514;
const ms = 1000;

interface Watched {
  readonly queue: TxQueue;
  /** How often the qdisc was asked to run. */
  readonly runs: () => number;
}

function watch(settings: Partial<TxQueueSettings> = {}): Watched {
  let runs = 0;
  const queue = new TxQueue({ ...defaultTxQueueSettings, ...settings }, 0, () => {
    runs++;
  });
  return { queue, runs: () => runs };
}

describe('the stop bits', () => {
  test('the driver stops and wakes; only a wake of a stopped queue runs the qdisc', () => {
    const { queue, runs } = watch();
    queue.stop(0);
    expect([queue.driverXoff, queue.stackXoff, queue.stopped]).toEqual([true, false, true]);
    queue.wake(10);
    expect([queue.driverXoff, queue.stopped, runs()]).toEqual([false, false, 1]);
    queue.wake(20);
    expect(runs()).toBe(1);
  });

  test('start clears the driver’s bit without running the qdisc', () => {
    const { queue, runs } = watch();
    queue.stop(0);
    queue.start(5);
    expect([queue.driverXoff, runs()]).toEqual([false, 0]);
  });

  test('BQL stops when its limit is exceeded, not when it is reached', () => {
    const { queue } = watch({ limitMinBytes: 2 * frame });
    queue.sent(1, 0);
    queue.completed(1, 0, 0);
    expect(queue.limitBytes).toBe(2 * frame);
    queue.sent(frame, 0);
    expect(queue.availBytes).toBe(frame);
    queue.sent(frame, 0);
    expect([queue.stackXoff, queue.availBytes]).toEqual([false, 0]);
    queue.sent(frame, 0);
    expect([queue.stackXoff, queue.availBytes]).toEqual([true, -frame]);
  });

  test('a completion that makes room clears the bit and runs the qdisc; one that does not leaves it', () => {
    const { queue, runs } = watch({ limitMinBytes: 1000, limitMaxBytes: 1000 });
    queue.sent(1, 0);
    queue.completed(1, 0, 0);
    queue.sent(3000, 0);
    expect([queue.stackXoff, runs()]).toEqual([true, 1]);
    queue.completed(1999, 0, ms);
    expect([queue.stackXoff, queue.availBytes, runs()]).toEqual([true, -1, 1]);
    queue.completed(1, 0, ms);
    expect([queue.stackXoff, queue.availBytes, runs()]).toEqual([false, 0, 2]);
  });

  test('either bit alone keeps the queue stopped', () => {
    const { queue, runs } = watch();
    queue.sent(frame, 0);
    queue.stop(0);
    expect([queue.driverXoff, queue.stackXoff]).toEqual([true, true]);
    queue.completed(frame, 0, ms);
    expect([queue.stopped, queue.stackXoff, runs()]).toEqual([true, false, 1]);
    queue.wake(ms);
    expect([queue.stopped, runs()]).toEqual([false, 2]);
  });

  test('stopping, and sending beyond the limit, stamp trans_start; sending within it does not', () => {
    const { queue } = watch({ limitMinBytes: 10_000 });
    queue.sent(1, 0);
    queue.completed(1, 0, 0);
    queue.transStartUs = 1;
    queue.sent(100, 50);
    expect(queue.transStartUs).toBe(1);
    queue.sent(10_000, 60);
    expect(queue.transStartUs).toBe(60);
    queue.stop(70);
    expect(queue.transStartUs).toBe(70);
    // Stamped even if it is stopped already: the driver has just had a reason.
    queue.stop(80);
    expect(queue.transStartUs).toBe(80);
  });
});

describe('reset', () => {
  test('clears BQL’s bit and the counts, keeps the driver’s bit, and does not run the qdisc', () => {
    const { queue, runs } = watch();
    queue.sent(frame, 0);
    queue.stop(0);
    queue.reset(5 * ms);
    expect([queue.stackXoff, queue.driverXoff, queue.inflightBytes, runs()]).toEqual([false, true, 0, 0]);
  });

  test('what completes afterwards is an accounting error, whichever way it was counted', () => {
    const counted = watch().queue;
    counted.sent(frame, 0);
    counted.reset(0);
    expect(() => counted.completed(frame, 0, ms)).toThrow(DqlAccountingError);

    const plain = watch({ bql: false }).queue;
    plain.sent(frame, 0);
    plain.reset(0);
    expect(() => plain.completed(0, frame, ms)).toThrow(DqlAccountingError);
  });
});

describe('completion', () => {
  test('zero bytes never touch DQL', () => {
    const { queue, runs } = watch();
    queue.sent(frame, 0);
    queue.dql.limit = 100_000;
    const before = queue.dql.adjLimit;
    queue.completed(0, 0, 10 * ms);
    expect([queue.dql.adjLimit, queue.stackXoff, runs()]).toEqual([before, true, 0]);
  });

  test.each([
    ['counted bytes', 101, 0],
    ['plain bytes', 0, 51],
    ['plain bytes, with counted ones that are right', 100, 51],
    ['counted bytes, with plain ones that are right', 101, 50],
  ])('too many %s: throws, and nothing has changed', (_name, bqlBytes, plainBytes) => {
    const { queue } = watch();
    queue.sent(100, 0);
    queue.configure({ ...defaultTxQueueSettings, bql: false }, 0);
    queue.sent(50, 0);
    expect(() => queue.completed(bqlBytes, plainBytes, ms)).toThrow(DqlAccountingError);
    expect(queue.inflightBytes).toBe(150);
    queue.completed(100, 50, ms);
    expect(queue.inflightBytes).toBe(0);
  });

  test('an object too large for DQL is counted as plain, and completes as such', () => {
    const { queue } = watch();
    expect(queue.sent(300_000_000, 0)).toBe('plain');
    expect(queue.inflightBytes).toBe(300_000_000);
    expect(queue.stackXoff).toBe(false);
    queue.completed(0, 300_000_000, ms);
    expect(queue.inflightBytes).toBe(0);
  });
});

describe('switching BQL while bytes are in flight', () => {
  const off: TxQueueSettings = { ...defaultTxQueueSettings, bql: false };

  test('off: the queue goes on at once, and what was counted still completes', () => {
    const { queue, runs } = watch();
    expect(queue.sent(frame, 0)).toBe('bql');
    expect(queue.stackXoff).toBe(true);
    queue.configure(off, 0);
    expect([queue.stackXoff, runs(), queue.limitBytes, queue.availBytes]).toEqual([
      false,
      1,
      undefined,
      Number.POSITIVE_INFINITY,
    ]);
    expect(queue.sent(frame, 0)).toBe('plain');
    expect(queue.stopped).toBe(false);
    queue.completed(frame, frame, ms);
    expect(queue.inflightBytes).toBe(0);
  });

  test('off leaves the driver’s bit', () => {
    const { queue } = watch();
    queue.stop(0);
    queue.configure(off, 0);
    expect(queue.driverXoff).toBe(true);
  });

  test('on: begins as on a new queue, with no room left over from before', () => {
    const { queue } = watch();
    for (let i = 0; i < 10; i++) {
      queue.sent(frame, 0);
      queue.completed(frame, 0, i * ms);
    }
    queue.configure(off, 0);
    for (let i = 0; i < 60; i++) queue.sent(frame, 0);
    queue.configure(defaultTxQueueSettings, 20 * ms);
    expect(queue.limitBytes).toBe(0);
    queue.sent(frame, 20 * ms);
    expect(queue.stackXoff).toBe(true);
    expect(queue.inflightBytes).toBe(61 * frame);
    queue.completed(frame, 60 * frame, 21 * ms);
    expect([queue.inflightBytes, queue.stackXoff]).toEqual([0, false]);
  });

  test('off and on again before the first completion: nothing is lost', () => {
    const { queue } = watch();
    queue.sent(frame, 0);
    queue.configure(off, 0);
    queue.configure(defaultTxQueueSettings, 0);
    queue.sent(frame, 0);
    expect(queue.dql.inflight).toBe(2 * frame);
    queue.completed(2 * frame, 0, ms);
    expect(queue.inflightBytes).toBe(0);
  });

  test('new bounds count from the next completion on', () => {
    const { queue } = watch();
    queue.configure({ ...defaultTxQueueSettings, limitMinBytes: 50_000, holdTimeMs: 250 }, 0);
    queue.sent(frame, 0);
    queue.completed(frame, 0, ms);
    expect([queue.limitBytes, queue.dql.holdTicks]).toEqual([50_000, 250]);
  });

  test('never an accounting error, and all balances to zero, however it is switched', () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('send' as const),
          bytes: fc.integer({ min: 1, max: 20_000 }),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('complete' as const),
          count: fc.integer({ min: 1, max: 8 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const), bql: fc.boolean() }) },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('wait' as const), us: fc.integer({ min: 0, max: 2e6 }) }),
      },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const { queue } = watch();
        const sent: { accounting: 'bql' | 'plain'; bytes: number }[] = [];
        let nowUs = 0;
        let inflight = 0;
        const complete = (count: number): void => {
          const sums = { bql: 0, plain: 0 };
          for (const { accounting, bytes } of sent.splice(0, count)) {
            sums[accounting] += bytes;
            inflight -= bytes;
          }
          queue.completed(sums.bql, sums.plain, nowUs);
        };
        for (const action of steps) {
          if (action.kind === 'send') {
            sent.push({ accounting: queue.sent(action.bytes, nowUs), bytes: action.bytes });
            inflight += action.bytes;
          } else if (action.kind === 'complete') complete(action.count);
          else if (action.kind === 'switch') {
            queue.configure({ ...defaultTxQueueSettings, bql: action.bql }, nowUs);
            if (!action.bql) expect(queue.stackXoff).toBe(false);
          } else nowUs += action.us;
          expect(queue.inflightBytes).toBe(inflight);
          // What BQL has stopped, something in flight will start again.
          if (queue.stackXoff) expect(queue.dql.inflight).toBeGreaterThan(0);
        }
        complete(sent.length);
        expect([queue.inflightBytes, queue.dql.inflight, queue.stackXoff]).toEqual([0, 0, false]);
      }),
      { numRuns: 300 },
    );
  });
});

describe('what is measured', () => {
  test('the peak of the bytes in flight, since it was last asked for', () => {
    const { queue } = watch({ bql: false });
    queue.sent(1000, 0);
    queue.sent(500, 0);
    queue.completed(0, 1500, ms);
    expect(queue.takePeakInflightBytes()).toBe(1500);
    expect(queue.takePeakInflightBytes()).toBe(0);
    queue.sent(200, 0);
    queue.sent(100, 0);
    queue.completed(0, 200, ms);
    expect(queue.takePeakInflightBytes()).toBe(300);
    // What is in flight now begins the next period.
    expect(queue.takePeakInflightBytes()).toBe(100);
  });

  test('the peak counts what was counted either way', () => {
    const { queue } = watch();
    queue.sent(1000, 0);
    queue.configure({ ...defaultTxQueueSettings, bql: false }, 0);
    queue.sent(700, 0);
    queue.completed(1000, 0, ms);
    expect(queue.takePeakInflightBytes()).toBe(1700);
  });

  test('how long each bit was set, the present stop included', () => {
    const { queue } = watch();
    queue.stop(100);
    expect(queue.driverXoffUs(150)).toBe(50);
    queue.stop(160);
    queue.wake(200);
    expect([queue.driverXoffUs(200), queue.driverXoffUs(900)]).toEqual([100, 100]);
    queue.stop(1000);
    queue.start(1010);
    expect(queue.driverXoffUs(2000)).toBe(110);

    queue.sent(frame, 3000);
    queue.sent(frame, 3500);
    expect(queue.stackXoffUs(4000)).toBe(1000);
    queue.completed(2 * frame, 0, 5000);
    expect(queue.stackXoffUs(9000)).toBe(2000);
    queue.sent(100_000, 10_000);
    queue.configure({ ...defaultTxQueueSettings, bql: false }, 10_500);
    expect(queue.stackXoffUs(20_000)).toBe(2500);
    expect(queue.driverXoffUs(20_000)).toBe(110);
  });

  test('a reset ends the time that BQL had the queue stopped', () => {
    const { queue } = watch();
    queue.sent(frame, 1000);
    queue.reset(1400);
    expect(queue.stackXoffUs(9000)).toBe(400);
  });
});
