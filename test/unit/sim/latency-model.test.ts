import { describe, expect, test } from 'vitest';
import type { BusTiming } from '../../../src/sim/bus-timing.ts';
import type { SimSpeed } from '../../../src/sim/sim-device.ts';
import { pattern } from './bare-device.ts';
import { bulkOut, personality, SimSetup } from './sim-setup.ts';

/** Bus settings of the table of spec 5.4, and of its reference calibration. */
const table: Partial<BusTiming> = { byteUs: 1 / 400, transferUs: 2, moderationUs: 0 };
const tableModerated: Partial<BusTiming> = { ...table, moderationUs: 40 };
const calibrated: Partial<BusTiming> = { byteUs: 1 / 450, transferUs: 0.3, moderationUs: 40 };

interface Case {
  readonly rate: number;
  readonly transfers: number;
  readonly frameBytes: number;
  readonly fifoBytes: number;
  readonly hysteresisBytes: number;
  readonly overheadBytes: number;
  readonly speed: SimSpeed;
  readonly bus: Partial<BusTiming>;
}

/**
 * A sender that always has N transfers in flight, one of which is an echo request once in a few rounds. The answer: how
 * long that takes from its submission, as the last of them, to the report of its answer, whose way back is free (in
 * milliseconds, median); and the share of the link that was used.
 */
function measure(options: Case): { readonly queueMs: number; readonly utilisation: number } {
  const { rate, transfers, frameBytes, overheadBytes, fifoBytes, hysteresisBytes, speed, bus } = options;
  const modem = personality('modem-10mbit');
  const setup = new SimSetup({
    ...modem,
    speed,
    fifoBytes,
    hysteresisBytes,
    bus,
    link: { ...modem.link, upBitsPerSecond: rate, downBitsPerSecond: 10e9, overheadBytes, delayUs: 0 },
  });
  setup.open();
  const load = setup.udp(9, pattern(frameBytes - 42));
  const echo = setup.udp(7, pattern(56));
  const samplesUs: number[] = [];
  let sentAtUs = 0;
  setup.receive(2048, 4, () => samplesUs.push(setup.driver.nowUs - sentAtUs));
  setup.saturate(load, transfers - 1);

  const probe = setup.driver.out(bulkOut, load);
  let rounds = 0;
  const before = setup.driver.onDone;
  setup.driver.onDone = (transfer, nowUs) => {
    before?.(transfer, nowUs);
    if (transfer !== probe) return;
    const asks = ++rounds % 3 === 0;
    if (asks) sentAtUs = nowUs;
    const bytes = asks ? echo : load;
    transfer.buffer.set(bytes);
    transfer.length = bytes.length;
    setup.driver.transport.submit(transfer, nowUs);
  };
  setup.driver.submit(probe);

  const roundUs = (transfers * (frameBytes + overheadBytes) * 8e6) / rate;
  setup.driver.run(2 * roundUs);
  const startUs = setup.driver.nowUs;
  const startFrames = setup.inspect().upSentFrames;
  setup.driver.run(20 * roundUs);
  samplesUs.sort((a, b) => a - b);
  expect(samplesUs.length).toBeGreaterThan(3);
  const frames = setup.inspect().upSentFrames - startFrames;
  return {
    queueMs: (samplesUs[samplesUs.length >> 1] ?? 0) / 1000,
    utilisation: (frames * (frameBytes + overheadBytes) * 8e6) / rate / (setup.driver.nowUs - startUs),
  };
}

describe('queueing without BQL is as in the table of spec 5.4', () => {
  const ethernet = { overheadBytes: 24, speed: 'super', bus: table } as const;
  test.each([
    // rate, N, frame, FIFO, hysteresis, bus, median in ms
    [100e6, 300, 1514, 0, 0, table, 38.33],
    [100e6, 300, 1514, 24_576, 0, table, 38.47],
    [100e6, 300, 1514, 49_152, 0, table, 40.44],
    [100e6, 300, 1490, 24_576, 16_384, tableModerated, 37.19],
    [100e6, 279, 1490, 24_576, 16_384, tableModerated, 34.65],
    [100e6, 186, 1490, 24_576, 16_384, tableModerated, 23.53],
    [100e6, 93, 1490, 24_576, 16_384, tableModerated, 12.4],
    [2.5e9, 300, 1514, 24_576, 0, table, 1.74],
    [2.5e9, 279, 1490, 24_576, 16_384, tableModerated, 1.59],
    [100e6, 279, 1490, 40_960, 16_384, calibrated, 36.0],
    [100e6, 300, 1490, 40_960, 16_384, calibrated, 38.5],
    [2.5e9, 279, 1490, 40_960, 16_384, calibrated, 1.43],
    [2.5e9, 250, 1490, 40_960, 16_384, calibrated, 1.29],
  ] as const)(
    '%d bit/s, %i transfers of %i bytes, FIFO %i, hysteresis %i',
    (rate, transfers, frameBytes, fifoBytes, hysteresisBytes, bus, expectedMs) => {
      const { queueMs } = measure({
        ...ethernet,
        rate,
        transfers,
        frameBytes,
        fifoBytes,
        hysteresisBytes,
        bus,
      });
      expect(queueMs / expectedMs).toBeGreaterThan(0.97);
      expect(queueMs / expectedMs).toBeLessThan(1.03);
    },
  );

  test.each([10e6, 100e6])(
    'USB 2 at %d bit/s: between the queue alone, and queue and FIFO (spec 5.3)',
    (rate) => {
      const transfers = 60;
      const frameBytes = 1514;
      const fifoBytes = 8192;
      const bus = { moderationUs: 0 };
      const options = { ...ethernet, speed: 'high', bus, rate, transfers, frameBytes, fifoBytes } as const;
      const { queueMs } = measure({ ...options, hysteresisBytes: 0 });
      const wireBytes = frameBytes + ethernet.overheadBytes;
      // The table has 72.5 and 7.89 ms, with pings so close together that they take the places of a tenth of the frames.
      expect(queueMs).toBeGreaterThan(((transfers - 1) * wireBytes * 8e3) / rate);
      expect(queueMs).toBeLessThan(((transfers * wireBytes + fifoBytes) * 8e3) / rate);
    },
  );

  test('the modem: 300 transfers of 1,514 bytes at 10 Mbit/s cost 363 to 369 ms', () => {
    const { queueMs, utilisation } = measure({
      rate: 10e6,
      transfers: 300,
      frameBytes: 1514,
      fifoBytes: 4096,
      hysteresisBytes: 0,
      overheadBytes: 0,
      speed: 'super',
      bus: {},
    });
    expect(queueMs).toBeGreaterThan(363);
    expect(queueMs).toBeLessThan(369);
    expect(utilisation).toBeCloseTo(1, 2);
  });

  test.each([
    [0, 0.955],
    [4096, 1],
  ])('a FIFO of %i bytes uses the link to %d', (fifoBytes, share) => {
    const { utilisation } = measure({
      ...ethernet,
      rate: 100e6,
      transfers: 200,
      frameBytes: 1514,
      fifoBytes,
      hysteresisBytes: 0,
    });
    expect(utilisation).toBeCloseTo(share, 2);
  });
});

test('a transfer is done when the device has it, not when it has left the link', () => {
  const setup = new SimSetup(personality('modem-10mbit', { fifoBytes: 4096 }));
  setup.open();
  const startUs = setup.driver.nowUs;
  for (let i = 0; i < 3; i++) setup.driver.submit(setup.driver.out(bulkOut, setup.udp(9, pattern(1472, i))));
  setup.driver.run(500);
  // Two fit at once; of the third a packet does.
  expect(setup.driver.reports).toHaveLength(2);
  expect(setup.inspect()).toMatchObject({
    fifoFillBytes: 4052,
    upQueueFrames: 2,
    upSentFrames: 0,
    fifoNaks: 1,
  });
  setup.driver.run(1000);
  expect(setup.driver.reports).toHaveLength(3);
  const leftAtUs = startUs + (1514 * 8) / 10;
  expect((setup.driver.reports[2]?.atUs ?? 0) - leftAtUs).toBeGreaterThan(0);
  expect((setup.driver.reports[2]?.atUs ?? 0) - leftAtUs).toBeLessThan(20);
});

test('a driver that is polled late is told the time of the poll, never an earlier one', () => {
  const setup = new SimSetup(personality('modem-10mbit'));
  setup.open();
  const [part] = setup.device.polled;
  setup.saturate(setup.udp(9, pattern(1472)), 20);
  const before = setup.driver.reports.length;
  part?.poll(setup.driver.nowUs + 15_000);
  const reports = setup.driver.reports.slice(before);
  expect(reports.length).toBeGreaterThan(10);
  expect(new Set(reports.map(({ atUs }) => atUs))).toEqual(new Set([setup.driver.nowUs + 15_000]));
});

test('time moves on in the device however late it is polled', () => {
  function framesAfterASecond(stepUs: number): number {
    const setup = new SimSetup(personality('modem-10mbit'));
    setup.open();
    setup.saturate(setup.udp(9, pattern(1472)), 100);
    for (const part of setup.device.polled) setup.driver.clock.remove(part);
    for (let nowUs = 10_000; nowUs <= 1_000_000; nowUs += stepUs) {
      for (const part of setup.device.polled) part.poll(nowUs);
    }
    return setup.inspect().upSentFrames;
  }
  const exact = framesAfterASecond(100);
  expect(exact).toBeGreaterThan(800);
  // Polls that come every 15 ms, as from a busy event loop.
  expect(Math.abs(framesAfterASecond(15_000) - exact)).toBeLessThanOrEqual(13);
});
