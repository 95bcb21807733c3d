import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { createQdisc } from '../../../src/netif/create-qdisc.ts';
import { flowHash } from '../../../src/netif/flow-hash.ts';
import { Fifo } from '../../../src/netif/fifo.ts';
import {
  defaultFqCodelSettings,
  FqCodel,
  type FqCodelSettings,
  hashClassifier,
} from '../../../src/netif/fq-codel.ts';
import type { Qdisc } from '../../../src/netif/qdisc.ts';
import type { Packet } from '../../../src/usbnet/packet.ts';
import { ipv4ChecksumIsGood, ipv4TypeOfService } from '../../../src/wire/ipv4.ts';
import { FramePool } from '../../harness/frame-pool.ts';

const ect0 = 2;
const ce = 3;
const frameUs = (1514 * 8) / 10;

function fqCodel(changes: Partial<FqCodelSettings> = {}): FqCodel {
  return new FqCodel({ ...defaultFqCodelSettings, ...changes }, hashClassifier(1));
}

function udpPort({ bytes }: Packet): number {
  return ((bytes[36] ?? 0) << 8) | (bytes[37] ?? 0);
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

/** Who sends something at a time into a qdisc in front of a link of 10 Mbit/s. */
interface Source {
  readonly port: number;
  readonly length: number;
  readonly tos?: number;
  /** Microseconds from one packet to the next. */
  readonly everyUs: number;
}

interface Outcome {
  readonly waitsUs: Map<number, number[]>;
  readonly bytes: Map<number, number>;
  readonly marks: Map<number, number>;
}

function link(qdisc: Qdisc, sources: readonly Source[], forUs: number): Outcome {
  const frames = new FramePool();
  const outcome: Outcome = { waitsUs: new Map(), bytes: new Map(), marks: new Map() };
  const due = sources.map((_, index) => index * 7);
  let freeAtUs = 0;
  for (let nowUs = 0; nowUs < forUs; nowUs += 50) {
    sources.forEach(({ port, length, tos = 0, everyUs }, index) => {
      for (; (due[index] ?? 0) <= nowUs; due[index] = (due[index] ?? 0) + everyUs) {
        qdisc.enqueue(frames.udp({ port, length, tos }), nowUs);
      }
    });
    while (freeAtUs <= nowUs) {
      const packet = qdisc.dequeue(nowUs);
      if (packet === undefined) break;
      freeAtUs = Math.max(freeAtUs, nowUs - 50) + (packet.length * 8) / 10;
      const port = udpPort(packet);
      outcome.waitsUs.set(port, [...(outcome.waitsUs.get(port) ?? []), nowUs - packet.enqueuedAtUs]);
      outcome.bytes.set(port, (outcome.bytes.get(port) ?? 0) + packet.length);
      if ((ipv4TypeOfService(packet.bytes, 14) & 3) === ce) {
        expect(ipv4ChecksumIsGood(packet.bytes, 14)).toBe(true);
        outcome.marks.set(port, (outcome.marks.get(port) ?? 0) + 1);
      }
      packet.release();
    }
  }
  qdisc.purge();
  expect(frames.pool.inUse).toBe(0);
  return outcome;
}

describe('what a link of 10 Mbit/s sees (RFC 8290)', () => {
  const greedy: Source = { port: 1, length: 1514, everyUs: frameUs / 1.5 };
  const sparse: Source = { port: 2, length: 200, everyUs: 20_000 };

  test('a sparse flow waits for no more than the frames on their way; in a fifo it waits for the whole queue', () => {
    const fair = link(fqCodel(), [greedy, sparse], 4e6);
    expect(quantile(fair.waitsUs.get(2) ?? [], 0.95)).toBeLessThan(2 * frameUs);
    const plain = link(new Fifo(1000), [greedy, sparse], 4e6);
    expect(quantile(plain.waitsUs.get(2) ?? [], 0.95)).toBeGreaterThan(500_000);
  });

  test('flows that always have something waiting share bytes, not packets', () => {
    const small: Source = { port: 3, length: 300, everyUs: 150 };
    const { bytes } = link(fqCodel(), [greedy, small], 4e6);
    expect((bytes.get(1) ?? 0) / (bytes.get(3) ?? 1)).toBeCloseTo(1, 1);
  });

  test('a sender that speaks ECN loses nothing and is marked, with the checksum right; one that does not loses packets', () => {
    const speaking = fqCodel();
    const marked = link(speaking, [{ ...greedy, tos: ect0 }], 2e6);
    expect(speaking.stats.drops).toBe(0);
    expect(speaking.stats.ecnMarks).toBeGreaterThan(50);
    expect(marked.marks.get(1)).toBeLessThanOrEqual(speaking.stats.ecnMarks);
    const silent = fqCodel();
    link(silent, [greedy], 2e6);
    expect(silent.stats.ecnMarks).toBe(0);
    expect(silent.stats.drops).toBeGreaterThan(50);
    const without = fqCodel({ ecn: false });
    link(without, [{ ...greedy, tos: ect0 }], 2e6);
    expect(without.stats.ecnMarks).toBe(0);
    expect(without.stats.drops).toBeGreaterThan(50);
  });

  test('a sender that slows down at a loss (as TCP does) settles near the target', () => {
    const frames = new FramePool();
    const waits = (qdisc: Qdisc): readonly number[] => {
      const roundTripUs = 40_000;
      const found: number[] = [];
      const answers: { readonly atUs: number; readonly isLost: boolean }[] = [];
      let window = 10;
      let inFlight = 0;
      let freeAtUs = 0;
      let cutUntilUs = 0;
      let drops = 0;
      for (let nowUs = 0; nowUs < 30e6; nowUs += 100) {
        while ((answers[0]?.atUs ?? Number.POSITIVE_INFINITY) <= nowUs) {
          const isLost = answers.shift()?.isLost === true;
          inFlight--;
          if (!isLost) window += 1 / window;
          else if (nowUs >= cutUntilUs) {
            window = Math.max(2, window / 2);
            cutUntilUs = nowUs + roundTripUs;
          }
        }
        while (inFlight < Math.floor(window)) {
          inFlight++;
          qdisc.enqueue(frames.udp(), nowUs);
        }
        if (freeAtUs <= nowUs) {
          const packet = qdisc.dequeue(nowUs);
          if (packet !== undefined) {
            freeAtUs = Math.max(freeAtUs, nowUs - 100) + frameUs;
            if (nowUs > 10e6) found.push(nowUs - packet.enqueuedAtUs);
            answers.push({ atUs: nowUs + roundTripUs, isLost: false });
            packet.release();
          }
        }
        for (; drops < qdisc.stats.drops; drops++) answers.push({ atUs: nowUs + roundTripUs, isLost: true });
      }
      return found;
    };
    const controlled = waits(fqCodel());
    expect(quantile(controlled, 0.5)).toBeLessThan(12_000);
    expect(quantile(controlled, 0.95)).toBeLessThan(30_000);
    // It is no starved link either, though one such sender halves its window at each loss.
    expect(controlled.length).toBeGreaterThan((20e6 / frameUs) * 0.85);
    expect(quantile(waits(new Fifo(1000)), 0.5)).toBeGreaterThan(100_000);
  });
});

describe('new and old flows', () => {
  test('a flow that had nothing waiting is served before those that had, once', () => {
    const frames = new FramePool();
    const qdisc = fqCodel();
    for (let i = 0; i < 20; i++) qdisc.enqueue(frames.udp({ port: 1, tag: 100 + i }), 0);
    expect([qdisc.dequeue(0)?.tag, qdisc.dequeue(0)?.tag]).toEqual([100, 101]);
    for (let i = 0; i < 4; i++) qdisc.enqueue(frames.udp({ port: 2, tag: i }), 0);
    expect(qdisc.flows).toBe(2);
    // From its second frame on it is one of the old ones and takes turns.
    const order = Array.from({ length: 8 }, () => qdisc.dequeue(0)?.tag);
    expect(order[0]).toBe(0);
    expect(order.map((tag) => (tag ?? 0) < 100).filter(Boolean)).toHaveLength(4);
    expect(order.slice(0, 3).filter((tag) => (tag ?? 0) >= 100).length).toBeGreaterThan(0);
    expect(qdisc.stats.newFlows).toBe(2);
  });

  test('a quantum of small frames goes in one turn', () => {
    const frames = new FramePool();
    const qdisc = fqCodel({ quantumBytes: 300 });
    for (let i = 0; i < 6; i++) {
      qdisc.enqueue(frames.udp({ port: 1, length: 100, tag: 1 }), 0);
      qdisc.enqueue(frames.udp({ port: 2, length: 100, tag: 2 }), 0);
    }
    const order = Array.from({ length: 12 }, () => qdisc.dequeue(0)?.tag);
    expect(order).toEqual([1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]);
  });
});

describe('no more room', () => {
  test('half of the longest backlog goes, from its head; the others lose nothing', () => {
    const frames = new FramePool();
    const qdisc = fqCodel({ limitPackets: 100 });
    for (let i = 0; i < 60; i++) qdisc.enqueue(frames.udp({ port: 1, tag: i }), 0);
    for (let i = 0; i < 40; i++) qdisc.enqueue(frames.udp({ port: 2, length: 200, tag: 1000 + i }), 0);
    expect(qdisc.stats.drops).toBe(0);
    expect(qdisc.enqueue(frames.udp({ port: 2, length: 200, tag: 1040 }), 0)).toBe(true);
    expect(qdisc.stats).toMatchObject({ drops: 30, dropsOverLimit: 30 });
    expect([qdisc.length, frames.pool.inUse]).toEqual([71, 71]);
    expect(qdisc.dequeue(0)?.tag).toBe(30);
  });

  test('never more than a batch at once, and of one packet that packet', () => {
    const frames = new FramePool();
    const qdisc = fqCodel({ limitPackets: 500 });
    for (let i = 0; i < 501; i++) qdisc.enqueue(frames.udp(), 0);
    expect(qdisc.stats.drops).toBe(64);
    const none = fqCodel({ limitPackets: 0 });
    expect(none.enqueue(frames.udp(), 0)).toBe(false);
    expect([none.length, none.backlogBytes, none.stats.drops, none.dequeue(1)]).toEqual([0, 0, 1, undefined]);
  });

  test('memory is limited too', () => {
    const frames = new FramePool();
    const qdisc = fqCodel({ memoryLimitBytes: 20 * 2048 });
    for (let i = 0; i < 20; i++) qdisc.enqueue(frames.udp({ length: 60 }), 0);
    expect([qdisc.stats.drops, qdisc.memoryBytes]).toEqual([0, 20 * 2048]);
    qdisc.enqueue(frames.udp({ length: 60 }), 0);
    expect([qdisc.stats.drops, qdisc.length]).toEqual([11, 10]);
  });
});

describe('flows', () => {
  const frames = new FramePool();
  const hash = (packet: Packet): number => flowHash(packet, 99);

  test('what differs in port, protocol, VLAN or kind is another flow; what differs in content or length is not', () => {
    const different = [
      frames.udp({ port: 1 }),
      frames.udp({ port: 2 }),
      frames.udp({ port: 1, protocol: 6 }),
      frames.udp({ port: 1, protocol: 1 }),
      frames.udp({ port: 1, vlan: 5 }),
      frames.udp({ port: 1, vlan: 6 }),
      frames.ipv6(1, 0),
      frames.ipv6(2, 0),
      frames.ipv6(1, 0, 77),
      Object.assign(frames.take(60), {
        bytes: Uint8Array.from({ length: 60 }, (_, i) => (i === 12 ? 8 : i === 13 ? 6 : 0)),
      }),
      frames.take(60),
    ];
    expect(new Set(different.map(hash)).size).toBe(different.length);
    expect(hash(frames.udp({ port: 1, length: 500, tos: 3 }))).toBe(hash(frames.udp({ port: 1 })));
    expect(hash(frames.udp({ port: 9, protocol: 1 }))).toBe(hash(frames.udp({ port: 1, protocol: 1 })));
    expect(hash(frames.ipv6(1, 3, 77))).toBe(hash(frames.ipv6(2, 0, 77)));
  });

  test('all fragments of a datagram are one flow', () => {
    const first = frames.udp({ port: 1 });
    first.bytes[20] = 0x20;
    const later = frames.udp({ port: 2 });
    later.bytes[20] = 0;
    later.bytes[21] = 185;
    expect(hash(first)).toBe(hash(later));
  });

  test('a thousand flows spread over a thousand queues as chance would have it', () => {
    const classify = hashClassifier(5);
    const used = new Set<number>();
    for (let port = 0; port < 1024; port++) {
      const packet = frames.udp({ port, length: 60 });
      const index = classify(packet, 1024);
      expect(index).toBeLessThan(1024);
      used.add(index);
      packet.release();
    }
    // 1,024 · (1 − 1/e) = 647 in the mean, standard deviation 10.
    expect(used.size).toBeGreaterThan(600);
    expect(used.size).toBeLessThan(695);
  });

  test('IPv6, and IPv4 behind a VLAN tag, are marked; ARP and what is cut short are dropped', () => {
    const outcomes = [
      () => frames.ipv6(1, ect0),
      () => frames.ipv6(1, 0),
      () => frames.udp({ vlan: 7, tos: ect0 }),
      () => frames.udp({ tos: ect0, length: 100 }),
      () => frames.take(60),
      () => Object.assign(frames.udp({ tos: ect0 }), { length: 20 }),
    ].map((make) => {
      const qdisc = fqCodel({ targetUs: 0, intervalUs: 0 });
      for (let i = 0; i < 200; i++) qdisc.enqueue(make(), 0);
      const first = qdisc.dequeue(1e6);
      const second = qdisc.dequeue(2e6);
      const marked = [first, second].find((packet) => packet !== undefined && qdisc.stats.ecnMarks > 0);
      qdisc.purge();
      if (marked === undefined) return qdisc.stats.drops > 0 ? 'dropped' : 'neither';
      const offset = marked.bytes[12] === 0x81 ? 18 : 14;
      const isIpv4 = (marked.bytes[offset] ?? 0) >>> 4 === 4;
      return isIpv4
        ? `marked, checksum ${ipv4ChecksumIsGood(marked.bytes, offset) ? 'good' : 'bad'}`
        : 'marked';
    });
    expect(outcomes).toEqual([
      'marked',
      'dropped',
      'marked, checksum good',
      'marked, checksum good',
      'dropped',
      'dropped',
    ]);
  });
});

test('what goes in comes out, is dropped, or waits, whatever comes in whichever order', () => {
  const operation = fc.oneof(
    {
      weight: 10,
      arbitrary: fc.tuple(fc.constant('in' as const), fc.integer({ min: 1, max: 60 }), fc.nat(5)),
    },
    {
      weight: 8,
      arbitrary: fc.tuple(fc.constant('out' as const), fc.integer({ min: 1, max: 60 }), fc.constant(0)),
    },
    { weight: 6, arbitrary: fc.tuple(fc.constant('wait' as const), fc.nat(200_000), fc.constant(0)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('purge' as const), fc.constant(0), fc.constant(0)) },
  );
  const settings = fc.record({
    limitPackets: fc.integer({ min: 0, max: 200 }),
    flows: fc.integer({ min: 1, max: 8 }),
    quantumBytes: fc.integer({ min: 1, max: 3000 }),
    ecn: fc.boolean(),
  });
  fc.assert(
    fc.property(settings, fc.array(operation, { maxLength: 150 }), fc.nat(), (changes, operations, seed) => {
      const frames = new FramePool();
      const random = new Random(seed);
      const qdisc = fqCodel(changes);
      let taken = 0;
      let out = 0;
      let purged = 0;
      let bytesIn = 0;
      let nowUs = 0;
      const waiting = new Set<Packet>();
      for (const [kind, amount, port] of operations) {
        if (kind === 'wait') nowUs += amount;
        else if (kind === 'purge') {
          purged += qdisc.purge();
          waiting.clear();
        }
        for (let i = 0; kind === 'in' && i < amount; i++) {
          const packet = frames.udp({ port, length: random.integer(60, 1514), tos: random.integer(0, 3) });
          // Some are nonsense.
          if (random.chance(0.2)) {
            for (let at = random.integer(0, 40); at < 60; at++) packet.bytes[at] = random.uint32() & 0xff;
          }
          taken++;
          bytesIn += packet.length;
          qdisc.enqueue(packet, nowUs);
          waiting.add(packet);
        }
        for (let i = 0; kind === 'out' && i < amount; i++) {
          const packet = qdisc.dequeue(nowUs);
          if (packet === undefined) {
            expect(qdisc.length).toBe(0);
            break;
          }
          out++;
          expect(waiting.has(packet)).toBe(true);
          packet.release();
          nowUs += 500;
        }
        expect(taken).toBe(out + qdisc.stats.drops + purged + qdisc.length);
        expect(frames.pool.inUse).toBe(qdisc.length);
        expect(qdisc.backlogBytes).toBeGreaterThanOrEqual(qdisc.length * 60);
        expect(qdisc.backlogBytes).toBeLessThanOrEqual(Math.min(bytesIn, qdisc.length * 1514));
        expect(qdisc.length).toBeLessThanOrEqual(changes.limitPackets);
        expect(qdisc.memoryBytes).toBe(qdisc.length * 2048);
      }
      for (let packet = qdisc.dequeue(nowUs); packet !== undefined; packet = qdisc.dequeue(nowUs)) {
        packet.release();
      }
      expect([qdisc.length, qdisc.backlogBytes, qdisc.memoryBytes, frames.pool.inUse, qdisc.flows]).toEqual([
        0, 0, 0, 0, 0,
      ]);
    }),
    { numRuns: 300 },
  );
});

test('one of each by name, with what is left out as in Linux', () => {
  const names = ['pfifo_fast', 'fq_codel', 'pfifo'] as const;
  expect(names.map((name) => createQdisc({ name }).name)).toEqual(names);
  expect(createQdisc({ name: 'fq_codel' }).roomPackets).toBe(10_240);
  expect(createQdisc({ name: 'fq_codel', fqCodel: { limitPackets: 100 } }).roomPackets).toBe(100);
  expect(createQdisc({ name: 'pfifo' }).roomPackets).toBe(1000);
});
