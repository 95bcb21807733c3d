import { describe, expect, test } from 'vitest';
import { Load, type LoadSettings } from '../../../src/probes/load.ts';
import { readFrame } from '../ip/link-double.ts';
import { ProbeBench, target } from './bench.ts';

const ms = 1000;
const second = 1000 * ms;

const usual: LoadSettings = {
  enabled: true,
  rateBitsPerSecond: 10e6,
  payloadBytes: 1472,
  targetPort: 9,
};

class LoadBench extends ProbeBench {
  /** Packets in the qdisc, as far as the load is told. */
  backlog = 0;
  readonly load: Load;

  constructor(settings: Partial<LoadSettings> = {}, resolved = true) {
    super(resolved);
    this.load = new Load(this.stack, () => this.backlog, { ...usual, ...settings });
  }

  start(): this {
    this.load.setTarget(target, this.nowUs);
    return this;
  }

  /** Polls when it asks to be, at most every `stepUs`, as a loop with coarse timers does; returns the frames sent. */
  run(us: number, stepUs = 0): number {
    const endUs = this.nowUs + us;
    let frames = 0;
    for (let rounds = 0; ; rounds++) {
      if (rounds > 1e6) throw new Error('the load keeps itself busy');
      const next = Math.max(this.load.pollAtUs(), rounds === 0 ? 0 : this.nowUs + stepUs);
      if (next > endUs) break;
      this.nowUs = Math.max(this.nowUs, next);
      this.load.poll(this.nowUs);
      frames += this.link.take().length;
    }
    this.nowUs = endUs;
    return frames;
  }
}

describe('a target rate', () => {
  test.each([
    ['1 Mbit/s', 1e6, 0],
    ['10 Mbit/s', 10e6, 0],
    ['100 Mbit/s', 100e6, 0],
    ['10 Mbit/s, with timers of 1.1 ms', 10e6, 1100],
    ['100 Mbit/s, with timers of 1.1 ms', 100e6, 1100],
    ['333.3 Mbit/s, with timers of 5 ms', 333.3e6, 5000],
  ])('%s is kept to a packet, reckoned in IP bytes', (_name, rateBitsPerSecond, stepUs) => {
    const bench = new LoadBench({ rateBitsPerSecond }).start();
    const frames = bench.run(10 * second, stepUs);
    const expected = (rateBitsPerSecond * 10) / (1500 * 8);
    // What became due in the last, unfinished step is still to come.
    const unfinished = (rateBitsPerSecond * stepUs) / (1e6 * 1500 * 8);
    expect(frames).toBeGreaterThanOrEqual(Math.floor(expected - unfinished));
    expect(frames).toBeLessThanOrEqual(Math.ceil(expected) + 1);
    expect([bench.load.sent, bench.load.dropped]).toEqual([frames, 0]);
  });

  test('packets are evenly spaced', () => {
    const bench = new LoadBench().start();
    const times: number[] = [];
    for (let i = 0; i < 100; i++) {
      bench.nowUs = Math.max(bench.nowUs, bench.load.pollAtUs());
      bench.load.poll(bench.nowUs);
      times.push(...bench.link.take().map(({ nowUs }) => nowUs));
    }
    times.forEach((atUs, i) => expect(atUs).toBeCloseTo(i * 1200, 3));
  });

  test('a pause of ours is not made up for by a burst: 20 ms at most', () => {
    const bench = new LoadBench().start();
    bench.run(100 * ms);
    bench.nowUs = 60 * second;
    bench.load.poll(bench.nowUs);
    expect(bench.link.take().length).toBeLessThanOrEqual(Math.ceil((20 * ms) / 1200) + 1);
  });

  test('what the interface drops is counted, and the rate is kept', () => {
    const bench = new LoadBench().start();
    bench.link.accepts = false;
    bench.run(second);
    expect(bench.load.sent).toBe(0);
    expect(bench.load.dropped).toBeGreaterThanOrEqual(833);
    expect(bench.load.dropped).toBeLessThanOrEqual(835);
  });

  test('smaller packets at the same rate are more', () => {
    const bench = new LoadBench({ payloadBytes: 100 }).start();
    expect(bench.run(second)).toBeGreaterThanOrEqual(Math.floor(10e6 / (128 * 8)));
  });

  test('payloads beyond the MTU are cut to it', () => {
    const bench = new LoadBench();
    bench.link.mtuBytes = 1400;
    bench.start();
    bench.load.poll(0);
    expect(readFrame(bench.link.take()[0]?.bytes ?? new Uint8Array(34)).totalLength).toBe(1400);
    expect(bench.run(second)).toBeGreaterThanOrEqual(Math.floor(10e6 / (1400 * 8)) - 1);
  });
});

/** A load without a rate, over a qdisc that holds what is sent until the test takes it. */
function greedyBench(resolved = true): LoadBench {
  const bench = new LoadBench({ rateBitsPerSecond: 0 }, resolved);
  const transmit = bench.link.transmit.bind(bench.link);
  bench.link.transmit = (packet, nowUs) => {
    if (packet.length > 100) bench.backlog++;
    return transmit(packet, nowUs);
  };
  return bench;
}

describe('as fast as the queue takes it', () => {
  test('it fills the qdisc to 128 packets, and again when no more than 64 are left', () => {
    const bench = greedyBench().start();
    bench.load.poll(0);
    expect([bench.backlog, bench.load.pollAtUs()]).toEqual([128, Number.POSITIVE_INFINITY]);
    bench.backlog = 65;
    bench.load.poll(1);
    expect([bench.backlog, bench.load.pollAtUs()]).toEqual([65, Number.POSITIVE_INFINITY]);
    bench.backlog = 64;
    expect(bench.load.pollAtUs()).toBeLessThanOrEqual(1);
    bench.load.poll(1);
    expect(bench.backlog).toBe(128);
  });

  test('an interface that takes nothing is tried again every millisecond, not all the time', () => {
    const bench = greedyBench().start();
    bench.link.transmit = (packet) => {
      packet.release();
      return false;
    };
    bench.run(100 * ms);
    expect(bench.load.dropped).toBeGreaterThan(50);
    expect(bench.load.dropped).toBeLessThanOrEqual(101);
  });
});

describe('starting and stopping', () => {
  const makers = [
    ['paced', (resolved = true): LoadBench => new LoadBench({}, resolved)],
    ['greedy', greedyBench],
  ] as const;

  test.each(makers)('%s: nothing without a target, or when it is off', (_name, make) => {
    const bench = make();
    expect([bench.run(second), bench.load.pollAtUs()]).toEqual([0, Number.POSITIVE_INFINITY]);
    bench.start();
    expect(bench.run(second)).toBeGreaterThan(100);
    bench.load.configure({ ...usual, enabled: false }, bench.nowUs);
    expect([bench.run(second), bench.load.pollAtUs()]).toEqual([0, Number.POSITIVE_INFINITY]);
    bench.load.configure(usual, bench.nowUs);
    expect(bench.run(second)).toBeGreaterThan(100);
    bench.load.setTarget(undefined, bench.nowUs);
    expect([bench.run(second), bench.load.pollAtUs()]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  test.each(makers)(
    '%s: while the target’s MAC address is not known it is tried every 50 ms',
    (_name, make) => {
      const bench = make(false).start();
      bench.run(second);
      expect(bench.load.sent).toBe(0);
      expect(bench.stack.counters.unresolved).toBeGreaterThanOrEqual(20);
      expect(bench.stack.counters.unresolved).toBeLessThanOrEqual(22);
      bench.resolve();
      bench.load.poll(bench.nowUs + 50 * ms);
      expect(bench.load.sent).toBeGreaterThan(0);
    },
  );

  test('a rate that is changed holds from then on', () => {
    const bench = new LoadBench().start();
    bench.run(second);
    bench.load.configure({ ...usual, rateBitsPerSecond: 20e6 }, bench.nowUs);
    const frames = bench.run(second);
    expect(Math.abs(frames - 20e6 / 12_000)).toBeLessThanOrEqual(2);
  });
});

describe('a socket’s bound', () => {
  /** Tags of the frames that were sent since the last time. */
  function tagsOf(bench: LoadBench): number[] {
    return bench.link.take().map(({ tag }) => tag);
  }

  test.each([
    ['greedy', 0],
    ['at a rate', 100e6],
  ])(
    '%s: no more are below it than it says, and each that has left makes room',
    (_name, rateBitsPerSecond) => {
      const bench = new LoadBench({ rateBitsPerSecond, socketPackets: 5 }).start();
      const sent: number[] = [];
      for (let i = 0; i < 20; i++) {
        bench.nowUs += 10 * ms;
        bench.load.poll(bench.nowUs);
        sent.push(...tagsOf(bench));
      }
      expect(sent).toHaveLength(5);
      expect(bench.load.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
      const [tag = 0] = sent;
      bench.load.handlePacketSent(tag);
      bench.load.handlePacketSent(tag);
      expect(bench.load.pollAtUs()).toBeLessThanOrEqual(bench.nowUs);
      bench.load.poll(bench.nowUs);
      expect(tagsOf(bench)).toHaveLength(2);
      expect(bench.load.sent).toBe(7);
    },
  );

  test('other packets, and those of before a restart, make no room', () => {
    const bench = new LoadBench({ rateBitsPerSecond: 0, socketPackets: 5 }).start();
    bench.load.poll(0);
    const [before = 0] = tagsOf(bench);
    bench.load.configure({ ...usual, rateBitsPerSecond: 0, socketPackets: 5 }, 0);
    bench.load.poll(0);
    expect(tagsOf(bench)).toHaveLength(5);
    bench.load.handlePacketSent(before);
    bench.load.handlePacketSent(0);
    bench.load.poll(0);
    expect(tagsOf(bench)).toEqual([]);
  });
});
