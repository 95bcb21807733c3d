import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PfifoFast } from '../../../src/netif/pfifo-fast.ts';
import { priorities, tosPriority } from '../../../src/netif/priority.ts';
import { type Packet, PacketPool } from '../../../src/usbnet/packet.ts';

/** Priority 0 … 15 to band (spec 4.2). */
const bands = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1] as const;

function take(pool: PacketPool, priority: number, tag: number, length = 100): Packet {
  const packet = pool.take();
  if (packet === undefined) throw new Error('no packet');
  return Object.assign(packet, { priority, tag, length });
}

describe('TOS to priority (the table of spec 4.2)', () => {
  test('all sixteen rows, and only these four bits count', () => {
    const expected = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    for (let tos = 0; tos < 256; tos++) expect(tosPriority(tos)).toBe(expected[(tos & 0x1e) / 2]);
  });

  test.each([
    ['a ping with minimum delay', 0x10, 0],
    ['expedited forwarding, which is not what it seems', 0xb8, 1],
    ['best effort', 0x00, 1],
    ['bulk', 0x08, 2],
  ])('%s (%i): band %i', (_name, tos, band) => {
    expect(bands[tosPriority(tos)]).toBe(band);
  });

  test('the numbers of TC_PRIO', () => {
    expect(priorities).toEqual({
      bestEffort: 0,
      filler: 1,
      bulk: 2,
      interactiveBulk: 4,
      interactive: 6,
      control: 7,
    });
  });
});

describe('pfifo_fast', () => {
  test('priorities go to the kernel’s bands, modulo sixteen', () => {
    for (let priority = 0; priority < 32; priority++) {
      const pool = new PacketPool(10);
      const qdisc = new PfifoFast();
      // One packet of each band, and the one in question: it leaves before those of later bands, behind its own.
      const markers = { 0: 6, 1: 0, 2: 2 } as const;
      for (const band of [2, 1, 0] as const) qdisc.enqueue(take(pool, markers[band], band), 0);
      qdisc.enqueue(take(pool, priority, 9), 0);
      const order = [0, 1, 2, 3].map(() => qdisc.dequeue(0)?.tag);
      expect(order.indexOf(9)).toBe((bands[priority % 16] ?? 0) + 1);
    }
  });

  test('strict priority between bands, first in first out within each', () => {
    const arrivals = fc.array(fc.tuple(fc.boolean(), fc.nat(15)), { maxLength: 200 });
    fc.assert(
      fc.property(arrivals, (steps) => {
        const pool = new PacketPool(1000);
        const qdisc = new PfifoFast(1000);
        const model: Packet[][] = [[], [], []];
        steps.forEach(([isArrival, priority], i) => {
          if (isArrival) {
            const packet = take(pool, priority, i, 60 + i);
            model[bands[priority] ?? 0]?.push(packet);
            expect(qdisc.enqueue(packet, 0)).toBe(true);
          } else {
            expect(qdisc.dequeue(0)).toBe(model.find((band) => band.length > 0)?.shift());
          }
          const waiting = model.flat();
          expect(qdisc.length).toBe(waiting.length);
          expect(qdisc.backlogBytes).toBe(waiting.reduce((sum, { length }) => sum + length, 0));
        });
      }),
    );
  });

  test('a full band drops the packet that arrives, and gives it back; the other bands have room', () => {
    const pool = new PacketPool(100);
    const qdisc = new PfifoFast(3);
    for (let i = 0; i < 5; i++) expect(qdisc.enqueue(take(pool, 0, i), 0)).toBe(i < 3);
    expect([qdisc.stats.drops, qdisc.length, pool.inUse]).toEqual([2, 3, 3]);
    expect(qdisc.enqueue(take(pool, 6, 9), 0)).toBe(true);
    expect(qdisc.dequeue(0)?.tag).toBe(9);
    expect(qdisc.dequeue(0)?.tag).toBe(0);
    expect(qdisc.enqueue(take(pool, 0, 5), 0)).toBe(true);
  });

  test('each band holds a thousand packets', () => {
    const pool = new PacketPool(5000);
    const qdisc = new PfifoFast();
    for (const priority of [0, 2, 6]) {
      for (let i = 0; i < 1001; i++) qdisc.enqueue(take(pool, priority, i), 0);
    }
    expect([qdisc.length, qdisc.stats.drops, pool.inUse]).toEqual([3000, 3, 3000]);
  });

  test('a purge gives all back and is no drop', () => {
    const pool = new PacketPool(10);
    const qdisc = new PfifoFast();
    for (const priority of [0, 2, 6]) qdisc.enqueue(take(pool, priority, 0), 0);
    expect(qdisc.purge()).toBe(3);
    expect([qdisc.length, qdisc.backlogBytes, qdisc.stats.drops, pool.inUse]).toEqual([0, 0, 0, 0]);
  });
});
