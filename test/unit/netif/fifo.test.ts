import { expect, test } from 'vitest';
import { Fifo } from '../../../src/netif/fifo.ts';
import { FramePool } from '../../harness/frame-pool.ts';

test('first in, first out, whatever the priority; a full queue drops what arrives and gives it back', () => {
  const frames = new FramePool();
  const qdisc = new Fifo(3);
  const accepted = [0, 6, 2, 6].map((priority, tag) => {
    const packet = frames.udp({ tag, length: 100 + tag });
    packet.priority = priority;
    return qdisc.enqueue(packet, 0);
  });
  expect(accepted).toEqual([true, true, true, false]);
  expect([qdisc.length, qdisc.backlogBytes, qdisc.stats.drops, frames.pool.inUse]).toEqual([3, 303, 1, 3]);
  expect(qdisc.stats).toMatchObject({ drops: 1, dropsOverLimit: 1, ecnMarks: 0 });
  expect([qdisc.dequeue(0)?.tag, qdisc.dequeue(0)?.tag]).toEqual([0, 1]);
  expect([qdisc.length, qdisc.backlogBytes]).toEqual([1, 102]);
  expect(qdisc.purge()).toBe(1);
  expect([qdisc.length, qdisc.backlogBytes, qdisc.stats.drops]).toEqual([0, 0, 1]);
  expect(qdisc.dequeue(0)).toBeUndefined();
});
