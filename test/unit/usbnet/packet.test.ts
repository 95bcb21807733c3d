import { expect, test } from 'vitest';
import { PacketPool } from '../../../src/usbnet/packet.ts';

test('a pool grows up to its limit, then refuses and counts that', () => {
  const pool = new PacketPool(2);
  const first = pool.take();
  const second = pool.take();
  expect(first).not.toBe(second);
  expect([pool.take(), pool.failures, pool.inUse]).toEqual([undefined, 1, 2]);
  first?.release();
  expect(pool.inUse).toBe(1);
  expect(pool.take()).toBe(first);
});

test('a packet that comes back is as good as new', () => {
  const pool = new PacketPool(1);
  const packet = pool.take();
  if (packet === undefined) throw new Error('no packet');
  Object.assign(packet, { length: 99, priority: 7, tag: 3, enqueuedAtUs: 12 });
  packet.release();
  expect(pool.take()).toMatchObject({ length: 0, priority: 0, tag: 0, enqueuedAtUs: 0 });
});
