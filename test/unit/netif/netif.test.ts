import { describe, expect, test } from 'vitest';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import { createQdisc } from '../../../src/netif/create-qdisc.ts';
import { controlOut, type Procedure } from '../../../src/usbnet/procedure.ts';
import { cdcDevice, contextFor, converse, obliging } from '../minidrivers/conversation.ts';
import { makeDevice } from '../usbnet/hand-made-device.ts';
import { TestBinding } from '../usbnet/test-driver.ts';
import { NetifBench, type NetifBenchOptions } from './bench.ts';

const ms = 1000;
const off = { settings: { bql: false } };

/** Bound to cdc_ncm by its own bind; its carrier is up. */
function ncmBench(txTimerUs: number, more: Partial<NetifBenchOptions> = {}): NetifBench {
  const device = cdcDevice({ subclass: 0x0d });
  const { value: binding } = converse(cdcNcm.bind(contextFor(device, 'cdc_ncm', txTimerUs)), obliging());
  if (binding === undefined) throw new Error('cdc_ncm does not bind');
  const bench = new NetifBench({ ...more, bound: { device, binding } }).open();
  bench.transport.receive(0x83, Uint8Array.of(0xa1, 0, 1, 0, 0, 0, 0, 0), 0);
  bench.poll();
  return bench;
}

describe('sending', () => {
  test('a packet goes through the qdisc to the driver, and both waits are told', () => {
    const bench = new NetifBench().open();
    bench.nowUs = 100;
    bench.transmit(1000, { tag: 5 });
    expect(bench.tx).toHaveLength(0);
    bench.nowUs = 130;
    bench.poll();
    expect(bench.dequeued).toEqual([{ tag: 5, waitUs: 30 }]);
    bench.nowUs = 630;
    bench.endAll(bench.tx);
    expect(bench.sent).toEqual([{ tag: 5, driverUs: 500, ok: true }]);
    expect(bench.netif.packets.inUse).toBe(0);
  });

  test('while the queue is stopped packets wait in the qdisc, where an urgent one still overtakes', () => {
    const bench = new NetifBench().open();
    for (let i = 1; i <= 5; i++) bench.transmit(1000, { tag: i });
    bench.poll();
    // A new queue takes one packet, by BQL.
    expect([bench.tx.length, bench.netif.qdisc.length]).toEqual([1, 4]);
    bench.transmit(100, { tag: 99, priority: 6 });
    bench.endAll(bench.tx);
    expect(bench.dequeued.map(({ tag }) => tag).slice(0, 2)).toEqual([1, 99]);
  });

  test('a queue that goes on hands over what waits, without anyone sending', () => {
    const bench = new NetifBench(off).open();
    for (let i = 0; i < 100; i++) bench.transmit();
    bench.poll();
    expect([bench.tx.length, bench.netif.qdisc.length]).toEqual([60, 40]);
    bench.endAll(bench.tx);
    expect([bench.tx.length, bench.netif.qdisc.length]).toEqual([40, 0]);
  });

  test('BQL holds back what fits the driver’s queue', () => {
    const bench = new NetifBench({ settings: { limitMinBytes: 5000, limitMaxBytes: 5000 } }).open();
    for (let i = 0; i < 50; i++) bench.transmit(1000);
    bench.poll();
    bench.endAll(bench.tx);
    // Five thousand bytes, and the one packet that may go beyond.
    expect([bench.tx.length, bench.netif.txQueue.stackXoff]).toEqual([6, true]);
  });

  test('at most 16 packets in one run; the rest in the next, at the same time', () => {
    const bench = new NetifBench({ speed: 'super', ...off }).open();
    for (let i = 0; i < 40; i++) bench.transmit();
    const counts: number[] = [];
    while (bench.netif.pollAtUs() <= bench.nowUs) {
      bench.netif.poll(bench.nowUs);
      counts.push(bench.tx.length);
    }
    expect(counts).toEqual([16, 32, 40]);
  });

  test('a packet that the qdisc has no room for is dropped and given back', () => {
    const bench = new NetifBench({ txQueueLength: 2 }).open();
    expect([bench.transmit(), bench.transmit(), bench.transmit()]).toEqual([true, true, false]);
    expect([bench.netif.qdisc.stats.drops, bench.netif.packets.inUse]).toEqual([1, 2]);
  });

  test('an interface that is not open, or has no carrier, takes nothing', () => {
    const closed = new NetifBench();
    expect([closed.transmit(), closed.netif.carrierDrops, closed.netif.packets.inUse]).toEqual([false, 1, 0]);
    const dark = new NetifBench({ linkInterrupt: true }).open();
    expect([dark.transmit(), dark.netif.carrierDrops, dark.netif.packets.inUse]).toEqual([false, 1, 0]);
  });
});

describe('another qdisc', () => {
  test('what waits is dropped and counted, as with tc qdisc replace; what comes then goes through the new one', () => {
    const bench = new NetifBench({ txQueueLength: 50 }).open();
    const { netif } = bench;
    for (let tag = 1; tag <= 200; tag++) bench.transmit(1000, { tag });
    bench.poll();
    const waiting = netif.qdisc.length;
    const dropsBefore = netif.qdiscDrops;
    expect(waiting).toBeGreaterThan(10);
    expect(dropsBefore).toBeGreaterThan(0);
    expect(netif.replaceQdisc(createQdisc({ name: 'fq_codel' }), bench.nowUs)).toBe(waiting);
    expect(bench.dropped).toHaveLength(waiting);
    expect([netif.qdisc.name, netif.qdisc.length, netif.qdiscDrops]).toEqual([
      'fq_codel',
      0,
      dropsBefore + waiting,
    ]);
    bench.transmit(1000, { tag: 999 });
    expect(netif.qdisc.length).toBe(1);
    bench.endAll(bench.tx);
    bench.endAll(bench.tx);
    expect(bench.sent.map(({ tag }) => tag)).toContain(999);
    expect(netif.packets.inUse).toBe(0);
  });

  test('a packet that fq_codel drops on its way out is told', () => {
    const bench = new NetifBench().open();
    const { netif } = bench;
    netif.replaceQdisc(
      createQdisc({ name: 'fq_codel', fqCodel: { targetUs: 1000, intervalUs: 1000 } }),
      bench.nowUs,
    );
    for (let tag = 1; tag <= 300; tag++) bench.transmit(1000, { tag });
    for (let i = 0; i < 300 && netif.qdisc.length > 0; i++) {
      bench.advance(2000);
      bench.endAll(bench.tx.slice(0, 1));
    }
    bench.endAll(bench.tx);
    expect(netif.qdiscDrops).toBeGreaterThan(0);
    expect(bench.dropped).toHaveLength(netif.qdiscDrops);
    expect(bench.sent.length + bench.dropped.length).toBe(300);
    expect(netif.packets.inUse).toBe(0);
  });
});

describe('the watchdog', () => {
  test('five seconds without a completion: what is out is called back, and the queue recovers', () => {
    const bench = new NetifBench().open();
    bench.transmit();
    bench.transmit();
    bench.poll();
    bench.advance(4_999_999);
    expect(bench.transport.cancelled).toHaveLength(0);
    bench.advance(1);
    expect([bench.transport.cancelled.length, bench.netif.usbnet.stats.txTimeouts]).toEqual([1, 1]);
    bench.transport.endCancelled(bench.nowUs);
    bench.poll();
    expect([bench.tx.length, bench.netif.qdisc.length]).toEqual([1, 0]);
  });

  test('while it stays stuck, once in five seconds', () => {
    const bench = new NetifBench().open();
    bench.transmit();
    bench.poll();
    bench.advance(20_100_000);
    expect(bench.netif.usbnet.stats.txTimeouts).toBe(4);
  });

  test('a queue that moves on now and then is not stuck', () => {
    const bench = new NetifBench().open();
    for (let i = 0; i < 10; i++) bench.transmit();
    for (let i = 0; i < 8; i++) {
      bench.advance(4_000_000);
      bench.endAll(bench.tx);
    }
    expect(bench.netif.usbnet.stats.txTimeouts).toBe(0);
  });

  test('nothing in flight is not stuck either, nor is an interface without a carrier or one that was stopped', () => {
    const idle = new NetifBench().open();
    idle.advance(60_000_000);
    const binding = new TestBinding();
    const dark = new NetifBench({ bound: { device: makeDevice(), binding } }).open();
    dark.transmit();
    dark.poll();
    binding.driver.host.linkChange(false, false, 0);
    dark.advance(60_000_000);
    const stopped = new NetifBench().open();
    stopped.transmit();
    stopped.poll();
    stopped.stop();
    stopped.advance(60_000_000);
    expect([idle, dark, stopped].map(({ netif }) => netif.usbnet.stats.txTimeouts)).toEqual([0, 0, 0]);
    expect(dark.carriers).toEqual([false]);
  });
});

describe('carrier and stop', () => {
  test('a carrier that goes takes along what waits; later packets are dropped until it comes back', () => {
    const device = cdcDevice({ subclass: 0x0d });
    const { value: binding } = converse(cdcNcm.bind(contextFor(device, 'cdc_ncm')), obliging());
    if (binding === undefined) throw new Error('cdc_ncm does not bind');
    const bench = new NetifBench({ bound: { device, binding } }).open();
    const link = (up: number): void => {
      bench.transport.receive(0x83, Uint8Array.of(0xa1, 0, up, 0, 0, 0, 0, 0), bench.nowUs);
    };
    link(1);
    bench.poll();
    for (let i = 0; i < 100; i++) bench.transmit();
    bench.poll();
    expect(bench.netif.qdisc.length).toBeGreaterThan(0);
    link(0);
    bench.poll();
    expect([bench.netif.qdisc.length, bench.carriers, bench.transmit()]).toEqual([0, [true, false], false]);
    bench.transport.endCancelled(bench.nowUs);
    bench.endAll(bench.tx);
    link(1);
    bench.poll();
    expect(bench.transmit()).toBe(true);
    bench.endAll(bench.tx);
    bench.endAll(bench.tx);
    expect(bench.netif.packets.inUse).toBe(0);
  });

  test('stopping drops what waits in the qdisc and gives it back', () => {
    const bench = new NetifBench().open();
    for (let i = 0; i < 10; i++) bench.transmit();
    bench.poll();
    const outcome = bench.stop();
    expect([bench.netif.qdisc.length, bench.netif.packets.inUse, bench.transmit()]).toEqual([0, 0, false]);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    expect(outcome()?.ok).toBe(true);
    expect(bench.tx).toHaveLength(0);
  });

  test('what came in before the stop but was not run does not go out after it', () => {
    const bench = new NetifBench().open();
    bench.transmit();
    bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(10 * ms);
    bench.open();
    bench.poll();
    expect(bench.tx).toHaveLength(0);
  });

  test('a failed opening leaves an interface that takes nothing', () => {
    const bench = new NetifBench({
      hooks: {
        *checkConnect(): Procedure<boolean> {
          return (yield* controlOut('vendor-device', 1, 0, 0)) === 'completed';
        },
      },
    });
    const outcome = bench.startOpen();
    bench.transport.answer('stall', bench.nowUs);
    expect([outcome()?.ok, bench.netif.usbnet.isOpen, bench.transmit()]).toEqual([false, false, false]);
  });
});

describe('with cdc_ncm', () => {
  test('packets that come together share an NTB, which leaves with the last of them', () => {
    const bench = ncmBench(0);
    for (let i = 1; i <= 3; i++) bench.transmit(100, { tag: i });
    bench.poll();
    const [submit] = bench.transport.submitsOn(0x02);
    expect([bench.tx.length, submit?.bytes.subarray(0, 4)]).toEqual([
      1,
      Uint8Array.of(0x4e, 0x43, 0x4d, 0x48),
    ]);
    // BQL counts the NTB, the statistics what is in it.
    expect(bench.netif.txQueue.inflightBytes).toBe(submit?.length);
    bench.endAll(bench.tx);
    expect(bench.netif.usbnet.stats).toMatchObject({ txPackets: 3, txBytes: 300, txTransfers: 1 });
    expect(bench.sent.map(({ tag }) => tag)).toEqual([1, 2, 3]);
  });

  test('a full NTB is counted with its padding', () => {
    const bench = ncmBench(0);
    for (let i = 0; i < 12; i++) bench.transmit(1514);
    bench.poll();
    expect([bench.tx.map(({ length }) => length), bench.netif.txQueue.inflightBytes]).toEqual([
      [16_384],
      16_384,
    ]);
    // BQL has stopped the queue: two packets wait below it and above the bus, or in the qdisc.
    expect(bench.netif.txQueue.stackXoff).toBe(true);
  });

  test('what is collected when BQL stops the queue leaves as soon as it goes on, also without more', () => {
    const bench = ncmBench(0);
    for (let i = 0; i < 12; i++) bench.transmit(1514);
    bench.poll();
    bench.endAll(bench.tx);
    expect(bench.tx).toHaveLength(1);
    bench.endAll(bench.tx);
    expect([bench.netif.usbnet.stats.txPackets, bench.netif.packets.inUse]).toEqual([12, 0]);
  });

  test('with the kernel’s timer a lone frame leaves after 1.2 ms, and is not counted before', () => {
    const bench = ncmBench(400);
    bench.transmit(60);
    bench.advance(1199);
    expect([bench.tx.length, bench.netif.txQueue.inflightBytes]).toEqual([0, 0]);
    bench.advance(1);
    expect([bench.tx.length, bench.netif.txQueue.inflightBytes]).toEqual([1, 246]);
  });

  test('with the kernel’s timer, too, nothing is left behind', () => {
    const bench = ncmBench(400, off);
    for (let i = 0; i < 25; i++) bench.transmit(1514);
    bench.advance(5 * ms);
    bench.endAll(bench.tx);
    expect([bench.netif.usbnet.stats.txPackets, bench.netif.packets.inUse]).toEqual([25, 0]);
  });

  test('the hidden queue below BQL is one NTB and one packet at most', () => {
    const bench = ncmBench(400);
    for (let i = 0; i < 200; i++) bench.transmit(1514);
    bench.poll();
    const handedOver = bench.dequeued.length;
    const onTheBus = bench.tx.reduce((sum, { packetCount }) => sum + packetCount, 0);
    expect(handedOver - onTheBus).toBeLessThanOrEqual(10 + 1);
  });
});
