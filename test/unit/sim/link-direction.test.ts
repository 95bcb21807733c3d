import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { VirtualClock } from '../../../src/base/virtual-clock.ts';
import { FramePool } from '../../../src/sim/frame.ts';
import { LinkDirection, type LinkDirectionOptions } from '../../../src/sim/link-direction.ts';
import { RateSchedule } from '../../../src/sim/rate-schedule.ts';

class Link {
  readonly pool = new FramePool();
  readonly clock = new VirtualClock();
  readonly sent: [number, number][] = [];
  readonly arrived: [number, number][] = [];
  readonly direction: LinkDirection;

  constructor(options: Partial<LinkDirectionOptions> = {}) {
    this.direction = new LinkDirection(
      {
        rate: RateSchedule.constant(8e6),
        overheadBytes: 0,
        delayUs: 0,
        lossProbability: 0,
        queueBytes: Number.POSITIVE_INFINITY,
        random: new Random(1),
        pool: this.pool,
        ...options,
      },
      {
        handleFrameSent: (length, nowUs) => this.sent.push([length, nowUs]),
        handleFrame: (frame, nowUs) => {
          this.arrived.push([frame.length, nowUs]);
          this.pool.give(frame);
        },
      },
    );
    this.clock.add({
      poll: (nowUs) => this.direction.advance(nowUs),
      pollAtUs: () => this.direction.pollAtUs(),
    });
  }

  send(length: number): boolean {
    const frame = this.pool.take();
    frame.length = length;
    return this.direction.send(frame, this.clock.nowUs());
  }
}

describe('a link', () => {
  test('sends one frame after another and delivers each after the delay', () => {
    const link = new Link({ delayUs: 500 });
    link.send(100);
    link.send(200);
    link.clock.runUntil(50);
    link.send(50);
    link.clock.runUntil(10_000);
    expect(link.sent).toEqual([
      [100, 100],
      [200, 300],
      [50, 350],
    ]);
    expect(link.arrived).toEqual([
      [100, 600],
      [200, 800],
      [50, 850],
    ]);
    expect(link.pool.inUse).toBe(0);
  });

  test('overhead takes time, but is not counted as bytes', () => {
    const link = new Link({ overheadBytes: 24 });
    link.send(1514);
    link.clock.runUntil(10_000);
    expect(link.sent).toEqual([[1514, 1538]]);
    expect(link.direction.sentBytes).toBe(1514);
  });

  test('a full queue drops the newcomer', () => {
    const link = new Link({ queueBytes: 1000 });
    expect([600, 400, 1].map((length) => link.send(length))).toEqual([true, true, false]);
    link.clock.runUntil(600);
    expect(link.send(600)).toBe(true);
    link.clock.runUntil(10_000);
    expect(link.arrived.map(([length]) => length)).toEqual([600, 400, 600]);
    expect(link.direction.droppedFrames).toBe(1);
    expect(link.pool.inUse).toBe(0);
  });

  test('loses frames with the given probability; the sender does not notice', () => {
    const link = new Link({ lossProbability: 0.1, delayUs: 10 });
    for (let i = 0; i < 10_000; i++) link.send(10);
    link.clock.runUntil(1e6);
    expect(link.sent).toHaveLength(10_000);
    expect(link.arrived.length + link.direction.lostFrames).toBe(10_000);
    // Within four standard deviations.
    expect(Math.abs(link.direction.lostFrames - 1000)).toBeLessThan(120);
    expect(link.pool.inUse).toBe(0);
  });

  test('without a carrier frames drain and arrive nowhere, those on their way included', () => {
    const link = new Link({ delayUs: 1000 });
    link.send(100);
    link.clock.runUntil(200);
    link.direction.setCarrier(false);
    link.send(100);
    link.clock.runUntil(5000);
    link.direction.setCarrier(true);
    link.send(100);
    link.clock.runUntil(10_000);
    expect(link.sent).toHaveLength(3);
    expect(link.arrived).toEqual([[100, 6100]]);
    expect(link.direction.lostFrames).toBe(2);
    expect(link.pool.inUse).toBe(0);
  });

  test('an outage holds frames back', () => {
    const rate = new RateSchedule([
      { fromUs: 0, rateBitsPerSecond: 8e6 },
      { fromUs: 100, rateBitsPerSecond: 0 },
      { fromUs: 5000, rateBitsPerSecond: 8e6 },
    ]);
    const link = new Link({ rate });
    link.send(150);
    link.send(10);
    link.clock.runUntil(20_000);
    expect(link.sent).toEqual([
      [150, 5050],
      [10, 5060],
    ]);
  });
});
