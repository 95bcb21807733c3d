import { describe, expect, test } from 'vitest';
import { StallDetector, type TrafficView } from '../../../src/usbnet/stall-detector.ts';

const limits = { stuckUs: 2_000_000, silentUs: 10_000_000 };
const stepUs = 100_000;

/** Looks ten times a second at traffic that a test describes. */
class Bench {
  readonly detector = new StallDetector(limits, 0);
  nowUs = 0;
  view: TrafficView = { inflightBytes: 0, txTransferBytes: 0, rxTransferBytes: 0, answersOverdue: false };

  pass(seconds: number, change: (view: TrafficView) => Partial<TrafficView> = () => ({})): this {
    for (let us = 0; us < seconds * 1e6; us += stepUs) {
      this.nowUs += stepUs;
      this.view = { ...this.view, ...change(this.view) };
      this.detector.observe(this.view, this.nowUs);
    }
    return this;
  }
}

const sending = (view: TrafficView): Partial<TrafficView> => ({
  txTransferBytes: view.txTransferBytes + 1514,
});

describe('bytes in flight and no completion', () => {
  test('are a stall from the limit on, not before', () => {
    const bench = new Bench().pass(1, sending).pass(1.9, () => ({ inflightBytes: 3028 }));
    expect(bench.detector.stall).toBeUndefined();
    expect(bench.pass(0.2).detector.stall).toBe('tx-stuck');
  });

  test('end with the next completion', () => {
    const bench = new Bench().pass(3, () => ({ inflightBytes: 3028 }));
    expect(bench.detector.stall).toBe('tx-stuck');
    expect(bench.pass(0.1, sending).detector.stall).toBeUndefined();
    expect(bench.detector.hasMoved('tx-stuck')).toBe(true);
    expect(bench.pass(0.1).detector.hasMoved('tx-stuck')).toBe(false);
  });

  test('nothing in flight is a pause, however long', () => {
    expect(new Bench().pass(1, sending).pass(60).detector.stall).toBeUndefined();
  });

  test('slow completions are none', () => {
    const bench = new Bench();
    for (let i = 0; i < 20; i++) bench.pass(1.5, () => ({ inflightBytes: 1514 })).pass(0.1, sending);
    expect(bench.detector.stall).toBeUndefined();
  });
});

describe('nothing received', () => {
  test('is a stall while we send and answers are overdue', () => {
    const bench = new Bench().pass(9.9, (view) => ({ ...sending(view), answersOverdue: true }));
    expect(bench.detector.stall).toBeUndefined();
    expect(bench.pass(0.2, sending).detector.stall).toBe('rx-silent');
  });

  test('is none while nobody has to answer', () => {
    expect(new Bench().pass(60, sending).detector.stall).toBeUndefined();
  });

  test('is none while something else is received', () => {
    const bench = new Bench().pass(60, (view) => ({
      ...sending(view),
      answersOverdue: true,
      rxTransferBytes: view.rxTransferBytes + 60,
    }));
    expect(bench.detector.stall).toBeUndefined();
  });

  test('is none if nothing was sent that could be answered', () => {
    expect(new Bench().pass(60, () => ({ answersOverdue: true })).detector.stall).toBeUndefined();
  });

  test('stuck transmission is the greater evil', () => {
    const bench = new Bench()
      .pass(1, sending)
      .pass(60, () => ({ inflightBytes: 1514, answersOverdue: true }));
    expect(bench.detector.stall).toBe('tx-stuck');
  });
});
