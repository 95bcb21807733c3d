import { describe, expect, test } from 'vitest';
import { Ping, type PingSettings, type ProbeResult } from '../../../src/probes/ping.ts';
import { ProbeBench, target } from './bench.ts';

const ms = 1000;
const second = 1000 * ms;
const identifier = 0x77;

const usual: PingSettings = {
  enabled: true,
  intervalUs: second,
  tos: 0x10,
  payloadBytes: 56,
  timeoutUs: 2 * second,
};

class PingBench extends ProbeBench {
  readonly results: ProbeResult[] = [];
  readonly ping: Ping;

  constructor(settings: Partial<PingSettings> = {}, resolved = true) {
    super(resolved);
    this.ping = new Ping(this.stack, identifier, { ...usual, ...settings }, (result) =>
      this.results.push(result),
    );
  }

  start(): this {
    this.ping.setTarget(target, this.nowUs);
    return this;
  }

  poll(): void {
    for (let rounds = 0; Math.min(this.ping.pollAtUs(), this.stack.pollAtUs()) <= this.nowUs; rounds++) {
      if (rounds === 100) throw new Error('the probe keeps itself busy');
      this.stack.poll(this.nowUs);
      this.ping.poll(this.nowUs);
    }
  }

  advance(us: number): void {
    const endUs = this.nowUs + us;
    this.poll();
    for (;;) {
      const next = Math.min(this.ping.pollAtUs(), this.stack.pollAtUs());
      if (next > endUs) break;
      this.nowUs = next;
      this.poll();
    }
    this.nowUs = endUs;
  }

  /** The transfer of a probe is done: handed to the driver, and ended, at these times. */
  sent(tag: number, handedOverAtUs: number, completedAtUs: number): void {
    this.ping.handlePacketDequeued(tag, 0);
    this.ping.handlePacketSent(tag, handedOverAtUs, completedAtUs);
  }

  reply(sequence: number): void {
    this.answer(identifier, sequence);
  }
}

describe('the schedule', () => {
  test('one probe every interval, the first at once', () => {
    const bench = new PingBench().start();
    bench.advance(5 * second);
    expect(bench.takeEchoes().map(({ sequence, atUs }) => [sequence, atUs])).toEqual(
      [0, 1, 2, 3, 4, 5].map((i) => [i, i * second]),
    );
  });

  test('no coordinated omission: probes leave on time whether those before were answered or not', () => {
    const bench = new PingBench({ intervalUs: 10 * ms, timeoutUs: 5 * second }).start();
    bench.advance(1 * second);
    expect(bench.takeEchoes()).toHaveLength(101);
    expect(bench.results).toEqual([]);
  });

  test('a probe that could only be sent late says so, and the schedule is kept', () => {
    const bench = new PingBench({ timeoutUs: 10 * second }).start();
    bench.poll();
    bench.nowUs = 1.3 * second;
    bench.poll();
    bench.advance(0.7 * second);
    const echoes = bench.takeEchoes();
    expect(echoes.map(({ atUs }) => atUs)).toEqual([0, 1.3 * second, 2 * second]);
    for (const { sequence, tag } of echoes) {
      bench.reply(sequence);
      bench.sent(tag, bench.nowUs, bench.nowUs);
    }
    // Lateness is ours and is told apart: the round trip begins when the probe was really sent.
    expect(bench.results.map(({ dueAtUs, lateUs, rttUs }) => [dueAtUs, lateUs, rttUs])).toEqual([
      [0, 0, 2 * second],
      [second, 300 * ms, 700 * ms],
      [2 * second, 0, 0],
    ]);
  });

  test('several that became due while nothing ran are all sent, each late by its own', () => {
    const bench = new PingBench({ intervalUs: 100 * ms }).start();
    bench.poll();
    bench.takeEchoes();
    bench.nowUs = 550 * ms;
    bench.poll();
    const echoes = bench.takeEchoes();
    for (const { sequence, tag } of echoes) {
      bench.reply(sequence);
      bench.sent(tag, bench.nowUs, bench.nowUs);
    }
    expect(bench.results.map(({ lateUs }) => lateUs / ms)).toEqual([450, 350, 250, 150, 50]);
  });

  test('after a very long pause only some are made up for', () => {
    const bench = new PingBench({ intervalUs: 10 * ms }).start();
    bench.poll();
    bench.takeEchoes();
    bench.nowUs = 3600 * second;
    bench.poll();
    const sent = bench.takeEchoes().length;
    expect(sent).toBeLessThanOrEqual(21);
    // And what is left out is counted: each probe that was due was sent, or is one of those.
    expect(1 + sent + bench.ping.omitted).toBe((3600 * second) / (10 * ms) + 1);
  });

  test('switched off and on, and with another interval', () => {
    const bench = new PingBench().start();
    bench.advance(second / 2);
    bench.ping.configure({ ...usual, enabled: false }, bench.nowUs);
    bench.takeEchoes();
    bench.advance(10 * second);
    expect(bench.takeEchoes()).toEqual([]);
    bench.ping.configure(usual, bench.nowUs);
    bench.advance(second);
    expect(bench.takeEchoes()).toHaveLength(2);
    // The next one was due in a second; with the shorter interval it does not take that long.
    bench.ping.configure({ ...usual, intervalUs: 50 * ms }, bench.nowUs);
    bench.advance(100 * ms);
    expect(bench.takeEchoes()).toHaveLength(2);
  });

  test('without a target nothing is sent', () => {
    const bench = new PingBench();
    bench.advance(10 * second);
    expect(bench.takeEchoes()).toEqual([]);
    bench.start();
    bench.ping.setTarget(undefined, bench.nowUs);
    bench.advance(10 * second);
    expect(bench.takeEchoes()).toEqual([]);
  });

  test('what is asked for: TOS, payload, priority; a payload beyond the MTU is cut', () => {
    const bench = new PingBench({ payloadBytes: 1400 });
    bench.link.mtuBytes = 576;
    bench.start().poll();
    const [frame] = bench.link.take();
    expect([frame?.bytes.length, frame?.bytes[15], frame?.priority]).toEqual([14 + 576, 0x10, 6]);
  });
});

describe('what becomes of a probe', () => {
  test('answered: round trip from the qdisc on, and the two waits', () => {
    const bench = new PingBench().start();
    bench.poll();
    const [probe] = bench.takeEchoes();
    const tag = probe?.tag ?? 0;
    bench.ping.handlePacketDequeued(tag, 3 * ms);
    bench.ping.handlePacketSent(tag, 3 * ms, 5 * ms);
    bench.nowUs = 20 * ms;
    bench.reply(0);
    expect(bench.results).toEqual([
      { dueAtUs: 0, sequence: 0, rttUs: 20 * ms, qdiscWaitUs: 3 * ms, driverQueueUs: 2 * ms, lateUs: 0 },
    ]);
  });

  test('the end of its transfer may be told after the reply', () => {
    const bench = new PingBench().start();
    bench.poll();
    const [probe] = bench.takeEchoes();
    bench.nowUs = 20 * ms;
    bench.reply(0);
    expect(bench.results).toEqual([]);
    bench.sent(probe?.tag ?? 0, 0, 21 * ms);
    expect(bench.results).toMatchObject([{ rttUs: 20 * ms, driverQueueUs: 21 * ms }]);
  });

  test('if it is never told the probe still counts as answered', () => {
    const bench = new PingBench().start();
    bench.poll();
    bench.nowUs = 20 * ms;
    bench.reply(0);
    bench.advance(2 * second);
    expect(bench.results).toMatchObject([{ sequence: 0, rttUs: 20 * ms, driverQueueUs: Number.NaN }]);
  });

  test('unanswered for the time limit: lost, once', () => {
    const bench = new PingBench().start();
    bench.poll();
    bench.sent(bench.takeEchoes()[0]?.tag ?? 0, 0, ms);
    bench.advance(2 * second - 1);
    expect(bench.results).toEqual([]);
    bench.advance(1);
    expect(bench.results).toMatchObject([{ sequence: 0, rttUs: Number.NaN, driverQueueUs: ms }]);
    // Too late.
    bench.reply(0);
    bench.advance(second / 2);
    expect(bench.results).toHaveLength(1);
  });

  test('answers may come in any order, and twice', () => {
    const bench = new PingBench({ intervalUs: 100 * ms }).start();
    bench.advance(250 * ms);
    for (const { tag } of bench.takeEchoes()) bench.sent(tag, 0, 0);
    for (const sequence of [2, 0, 0, 2, 1]) bench.reply(sequence);
    expect(bench.results.map(({ sequence, rttUs }) => [sequence, rttUs / ms])).toEqual([
      [2, 50],
      [0, 250],
      [1, 150],
    ]);
  });

  test('what the interface drops is lost at once', () => {
    const bench = new PingBench().start();
    bench.link.accepts = false;
    bench.poll();
    expect(bench.results).toMatchObject([{ sequence: 0, rttUs: Number.NaN }]);
  });

  test('while the MAC address is asked for nothing is sent and nothing is lost; then, each one is', () => {
    const bench = new PingBench({ intervalUs: 100 * ms }, false).start();
    bench.advance(2.95 * second);
    expect([bench.results.length, bench.ping.sent]).toEqual([0, 0]);
    bench.advance(6 * second);
    // It is asked for again meanwhile; that does not make it any less unreachable.
    expect(bench.results.length).toBe(60);
    expect(bench.results.every(({ rttUs }) => Number.isNaN(rttUs))).toBe(true);
    bench.resolve();
    bench.takeEchoes();
    bench.advance(100 * ms);
    expect(bench.takeEchoes()).toHaveLength(1);
  });

  test('answers of nobody’s probe, and tags of other senders, are passed over', () => {
    const bench = new PingBench().start();
    bench.poll();
    bench.reply(5);
    bench.answer(identifier + 1, 0);
    bench.ping.handlePacketSent(0, 0, 0);
    bench.ping.handlePacketDequeued(0, 99);
    bench.ping.handlePacketSent(0x10000 + 7, 0, 0);
    expect(bench.results).toEqual([]);
  });

  test('a thousand and more on their way: the oldest count as lost, none is mixed up', () => {
    const bench = new PingBench({ intervalUs: 10 * ms, timeoutUs: 60 * second }).start();
    bench.advance(11 * second);
    expect(bench.results).toHaveLength(1101 - 1024);
    expect(bench.results.every(({ rttUs }) => Number.isNaN(rttUs))).toBe(true);
    bench.reply(3);
    for (const { tag } of bench.takeEchoes().slice(-1)) bench.sent(tag, 0, 0);
    bench.reply(1100);
    expect(bench.results.at(-1)).toMatchObject({ sequence: 1100, rttUs: 0 });
  });

  test('the sequence number goes on beyond 16 bits', () => {
    const bench = new PingBench({ intervalUs: 10 * ms, timeoutUs: 20 * ms }).start();
    for (let i = 0; i < 65_540; i++) {
      bench.nowUs = i * 10 * ms;
      bench.poll();
      const [probe] = bench.takeEchoes();
      bench.sent(probe?.tag ?? 0, 0, 0);
      if (i % 1000 === 0 || i > 65_530) bench.reply(probe?.sequence ?? 0);
    }
    const answered = bench.results.filter(({ rttUs }) => !Number.isNaN(rttUs));
    expect(answered.at(-1)?.sequence).toBe(65_539);
    expect(answered).toHaveLength(66 + 9);
  });

  test('every probe is reported exactly once', () => {
    const bench = new PingBench({ intervalUs: 20 * ms, timeoutUs: 300 * ms }).start();
    for (let i = 0; i < 500; i++) {
      bench.advance(20 * ms);
      for (const { sequence, tag } of bench.takeEchoes()) {
        bench.sent(tag, 0, 0);
        if (sequence % 3 !== 0) bench.reply(sequence);
      }
    }
    bench.ping.setTarget(undefined, bench.nowUs);
    bench.advance(second);
    expect(bench.results.map(({ sequence }) => sequence).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: bench.ping.sent }, (_, i) => i),
    );
  });

  test('closed: nothing is sent, taken or reported any more', () => {
    const bench = new PingBench().start();
    bench.poll();
    bench.takeEchoes();
    bench.ping.close();
    bench.reply(0);
    bench.advance(10 * second);
    expect([bench.results, bench.takeEchoes()]).toEqual([[], []]);
  });
});
