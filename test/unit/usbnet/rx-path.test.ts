import { describe, expect, test } from 'vitest';
import { UsbnetBench } from './bench.ts';
import { bulkIn } from './hand-made-device.ts';

const ms = 1000;

function frame(length: number, fill = 0x5a): Uint8Array {
  return new Uint8Array(length).fill(fill);
}

describe('what is asked for', () => {
  test('RX_QLEN transfers, ten in each run of the completion half', () => {
    const bench = new UsbnetBench();
    bench.startOpen();
    const counts: number[] = [];
    while (bench.usbnet.pollAtUs() <= bench.nowUs) {
      bench.usbnet.poll(bench.nowUs);
      counts.push(bench.rx.length);
    }
    expect(counts).toEqual([10, 20, 30, 40, 50, 60]);
  });

  test.each([
    ['full', {}, 4],
    ['high', {}, 60],
    ['super', {}, 300],
    ['high', { rxUrbSizeBytes: 16_384 }, 5],
    ['high', { rxQlenLimit: 7 }, 7],
  ] as const)('at %s speed, with %o: %i', (speed, more, count) => {
    const bench = new UsbnetBench({ speed, ...more }).open();
    expect(bench.rx).toHaveLength(count);
  });

  test('each has room for whole packets: 1514 bytes are asked for as 1536', () => {
    const bench = new UsbnetBench().open();
    expect(bench.usbnet.rxUrbSizeBytes).toBe(1514);
    expect(bench.rx[0]?.length).toBe(1536);
  });

  test('without a carrier nothing is asked for', () => {
    const bench = new UsbnetBench({ linkInterrupt: true }).open();
    expect(bench.rx).toHaveLength(0);
  });
});

describe('what comes in', () => {
  test('a frame is handed up; another transfer is asked for at once', () => {
    const bench = new UsbnetBench().open();
    bench.transport.receive(bulkIn, frame(200), 0);
    expect([bench.rx.length, bench.received.length]).toEqual([60, 0]);
    bench.poll();
    expect(bench.received).toEqual([frame(200)]);
    expect(bench.usbnet.stats).toMatchObject({ rxPackets: 1, rxBytes: 186, rxTransferBytes: 200 });
  });

  test('frames are handed up in the order in which they came', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 5; i++) bench.transport.receive(bulkIn, frame(60 + i, i), 0);
    bench.poll();
    expect(bench.received.map((bytes) => bytes[0])).toEqual([0, 1, 2, 3, 4]);
  });

  test.each([0, 13])('%i bytes are no frame: a length error', (length) => {
    const bench = new UsbnetBench().open();
    bench.transport.receive(bulkIn, frame(length), 0);
    bench.poll();
    expect(bench.received).toEqual([]);
    expect(bench.usbnet.stats).toMatchObject({ rxPackets: 0, rxErrors: 1, rxLengthErrors: 1 });
    expect(bench.rx).toHaveLength(60);
  });

  test('what the driver does not understand is an error, and no more', () => {
    const bench = new UsbnetBench().open();
    bench.binding.driver.rxGood = false;
    bench.transport.receive(bulkIn, frame(100), 0);
    bench.poll();
    expect(bench.usbnet.stats).toMatchObject({ rxPackets: 0, rxErrors: 1, rxLengthErrors: 0 });
    expect(bench.rx).toHaveLength(60);
  });

  test('transfers are used again: no more exist than are out', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 500; i++) {
      bench.transport.receive(bulkIn, frame(60), 0);
      bench.poll();
    }
    expect(bench.usbnet.transfersMade).toBeLessThanOrEqual(61);
  });
});

describe('how a transfer can end (spec 2.6)', () => {
  // Status; rx_errors, rx_over_errors; whether another one is asked for before the completion half runs.
  test.each([
    ['cancelled', 0, 0, false],
    ['gone', 0, 0, false],
    ['overflow', 1, 1, true],
    ['timed-out', 1, 0, true],
    ['failed', 1, 0, true],
    ['protocol-error', 1, 0, false],
    ['stall', 1, 0, false],
  ] as const)(
    '%s: %i errors, %i of them overruns, asked again at once: %s',
    (status, errors, overruns, again) => {
      const bench = new UsbnetBench().open();
      bench.end(bench.rx[0], status, 33);
      expect(bench.rx).toHaveLength(again ? 60 : 59);
      expect(bench.usbnet.stats).toMatchObject({ rxErrors: errors, rxOverErrors: overruns });
      expect(bench.usbnet.stats.rxTransferErrors[status]).toBe(1);
      bench.poll();
      expect(bench.received).toEqual([]);
    },
  );

  test('a protocol error makes it back off for 125 ms; the frames that come meanwhile are taken', () => {
    const bench = new UsbnetBench().open();
    bench.end(bench.rx[0], 'protocol-error');
    bench.end(bench.rx[0], 'protocol-error');
    bench.poll();
    expect([bench.rx.length, bench.usbnet.stats.throttles]).toEqual([58, 1]);
    bench.transport.receive(bulkIn, frame(60), bench.nowUs);
    bench.advance(124_999);
    expect([bench.rx.length, bench.received.length]).toEqual([58, 1]);
    bench.advance(1);
    expect(bench.rx).toHaveLength(60);
  });

  test('a submit that fails is not tried again at once, but after 125 ms', () => {
    const bench = new UsbnetBench();
    bench.transport.submitResult = () => 'failed';
    bench.open();
    expect(bench.transport.submitsOn(bulkIn)).toHaveLength(1);
    bench.transport.submitResult = () => 'ok';
    bench.advance(125 * ms);
    expect(bench.rx).toHaveLength(60);
  });

  test('a submit without memory is tried again soon', () => {
    const bench = new UsbnetBench();
    bench.transport.submitResult = () => 'no-memory';
    bench.open();
    bench.transport.submitResult = () => 'ok';
    bench.advance(3 * ms);
    expect(bench.rx).toHaveLength(60);
  });

  test('a submit to a device that is gone is not tried again', () => {
    const bench = new UsbnetBench();
    bench.transport.submitResult = () => 'gone';
    bench.open();
    bench.advance(1_000_000);
    expect(bench.transport.submitsOn(bulkIn)).toHaveLength(1);
  });
});

describe('too many errors in a row: receiving is paused until the completion half has run', () => {
  test('at the twenty-first of thirty', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 20; i++) bench.end(bench.rx[0], 'failed');
    expect([bench.rx.length, bench.usbnet.stats.rxKills]).toEqual([60, 0]);
    bench.end(bench.rx[0], 'failed');
    expect([bench.rx.length, bench.usbnet.stats.rxKills]).toEqual([59, 1]);
    bench.end(bench.rx[0], 'failed');
    expect([bench.rx.length, bench.usbnet.stats.rxKills]).toEqual([58, 1]);
    bench.poll();
    expect(bench.rx).toHaveLength(60);
  });

  test('not if the window of thirty ends before', () => {
    const bench = new UsbnetBench().open();
    const end = (count: number, status: 'failed' | 'completed'): void => {
      for (let i = 0; i < count; i++) bench.end(bench.rx[0], status, 60);
    };
    end(20, 'failed');
    end(10, 'completed');
    // The thirty-first only begins the next window.
    end(1, 'failed');
    end(20, 'failed');
    expect(bench.usbnet.stats.rxKills).toBe(0);
    end(1, 'failed');
    expect(bench.usbnet.stats.rxKills).toBe(1);
  });

  test('opening begins a new window', () => {
    const bench = new UsbnetBench({ rxQlenLimit: 4 }).open();
    for (let i = 0; i < 10; i++) bench.end(bench.rx[0], 'failed');
    const outcome = bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    expect(outcome()?.ok).toBe(true);
    bench.open();
    for (let i = 0; i < 15; i++) bench.end(bench.rx[0], 'failed');
    expect(bench.usbnet.stats.rxKills).toBe(0);
  });
});
