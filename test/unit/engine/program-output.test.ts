import { describe, expect, test } from 'vitest';
import { readIperf } from '../../../src/engine/iperf3-output.ts';
import { readIrtt } from '../../../src/engine/irtt-output.ts';

const sum = (bits: number, more: object = {}): object => ({ bits_per_second: bits, ...more });

describe('iperf3', () => {
  test('TCP up: what arrived', () => {
    const end = { sum_sent: sum(10e6, { retransmits: 3, sender: true }), sum_received: sum(9e6) };
    expect(readIperf(JSON.stringify({ start: {}, intervals: [], end }, undefined, '\t'), 'up')).toEqual({
      summary: { upBitsPerSecond: 9e6, downBitsPerSecond: null, lostPercent: null, retransmits: 3 },
      error: undefined,
    });
  });

  test('UDP down: what arrived, and what did not', () => {
    const end = { sum: sum(8e6, { lost_percent: 2 }), sum_sent: sum(9e6) };
    expect(readIperf(JSON.stringify({ end }), 'down').summary).toEqual({
      upBitsPerSecond: null,
      downBitsPerSecond: 8e6,
      lostPercent: 2,
      retransmits: null,
    });
  });

  test('both ways', () => {
    const end = { sum_sent: sum(6e6), sum_received: sum(5e6), sum_received_bidir_reverse: sum(7e6) };
    expect(readIperf(JSON.stringify({ end }), 'both').summary).toMatchObject({
      upBitsPerSecond: 5e6,
      downBitsPerSecond: 7e6,
    });
  });

  test('as lines, from 3.17 on', () => {
    const lines = [
      { event: 'start', data: {} },
      { event: 'interval', data: {} },
      { event: 'end', data: { sum_received: sum(4e6) } },
    ].map((event) => JSON.stringify(event));
    expect(readIperf(lines.join('\n'), 'up').summary?.upBitsPerSecond).toBe(4e6);
    const failed = [...lines.slice(0, 2), '{"event":"error","data":"control socket has closed"}', '{"ev'];
    expect(readIperf(failed.join('\n'), 'up')).toEqual({
      summary: undefined,
      error: 'control socket has closed',
    });
  });

  test('its own words for what went wrong', () => {
    const text = '{"start":{"connected":[]},"intervals":[],"end":{},"error":"unable to connect to server"}';
    expect(readIperf(text, 'up')).toEqual({ summary: undefined, error: 'unable to connect to server' });
  });

  test.each(['', '{', 'null', '[]', '{"end":5}', 'iperf3: error', '{"event":"end"}'])(
    'nothing in %j',
    (text) => {
      expect(readIperf(text, 'up').summary).toBeUndefined();
    },
  );
});

describe('irtt', () => {
  const trips = [30, 10, 20].map((ms) => ({
    lost: 'false',
    delay: { rtt: ms * 1e6, send: (ms - 5) * 1e6, receive: 5e6 },
  }));
  const document = {
    stats: { packets_sent: 4, packets_received: 3, upstream_loss_percent: 25, downstream_loss_percent: 0 },
    round_trips: [...trips, { lost: 'true_up', delay: {} }],
  };

  test('round trips and one-way delays, in microseconds', () => {
    expect(readIrtt(`[Connecting] …\n${JSON.stringify(document)}`)).toEqual({
      sent: 4,
      received: 3,
      rttP50Us: 20_000,
      rttP95Us: 30_000,
      rttP99Us: 30_000,
      upDelayP50Us: 15_000,
      downDelayP50Us: 5000,
      upLossPercent: 25,
      downLossPercent: 0,
    });
  });

  test.each(['', 'Error: no reply from server', '{', '{}', '{"stats":{}}', '{"stats":1,"round_trips":[]}'])(
    'nothing in %j',
    (text) => {
      expect(readIrtt(text)).toBeUndefined();
    },
  );
});
