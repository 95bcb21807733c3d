import { afterEach, beforeEach, expect, test } from 'vitest';
import { NetdevFiles } from '../../../src/observe/netdev-files.ts';
import { NetdevReader } from '../../../src/observe/netdev-reader.ts';
import { FakeNetdevs, type FakeNetdevOptions } from './fake-netdevs.ts';

let system: FakeNetdevs;
let reader: NetdevReader;

async function open(options: FakeNetdevOptions): Promise<void> {
  const files = new NetdevFiles(system.root);
  system.add('eth0', options);
  const netdev = await files.describe('eth0');
  if (netdev === undefined) throw new Error('eth0 is there');
  reader = new NetdevReader(files, netdev);
}

beforeEach(() => {
  system = new FakeNetdevs();
});
afterEach(() => {
  reader.close();
  system.dispose();
});

test('bytes in flight and limits are sums over the queues', async () => {
  await open({ queues: 3 });
  for (const queue of [0, 1, 2]) {
    system.setLimit('eth0', 'inflight', 1514 * (queue + 1), queue);
    system.setLimit('eth0', 'limit', 3028, queue);
    system.setLimit('eth0', 'stall_cnt', 1, queue);
    system.setLimit('eth0', 'stall_max', 10 * queue, queue);
    system.set('eth0', `queues/tx-${queue}/tx_timeout`, 2);
  }
  expect(reader.readSample()).toMatchObject({ inflightBytes: 9084, limitBytes: 9084 });
  expect(reader.readInflightBytes()).toBe(9084);
  expect(reader.readStatus()).toMatchObject({ stallCount: 3, stallMaxTicks: 20, txTimeouts: 6 });
});

test('counters are those of the files', async () => {
  await open({});
  system.count('eth0', 'tx_bytes', 123_456_789_012);
  system.count('eth0', 'rx_errors', 3);
  system.count('eth0', 'tx_dropped', 2);
  expect(reader.readSample().counters).toEqual({
    tx_bytes: 123_456_789_012,
    rx_bytes: 0,
    tx_packets: 0,
    rx_packets: 0,
  });
  expect(reader.readStatus()).toMatchObject({ rxErrors: 3, txDropped: 2, txErrors: 0 });
});

test("BQL's settings are those of the first queue", async () => {
  await open({ queues: 2 });
  system.setLimit('eth0', 'limit_min', 3000);
  system.setLimit('eth0', 'hold_time', 250);
  expect(reader.readStatus()).toMatchObject({
    limitMinBytes: 3000,
    limitMaxBytes: 1_879_048_192,
    holdTimeMs: 250,
  });
});

test('without limits there is nothing in flight to be known, and the rest is there', async () => {
  await open({ bqlQueues: 0 });
  system.count('eth0', 'tx_packets', 5);
  const sample = reader.readSample();
  expect(sample.inflightBytes).toBeNaN();
  expect(sample.limitBytes).toBeNaN();
  expect(sample.counters.tx_packets).toBe(5);
  expect(reader.queueCount).toBe(0);
  expect(reader.isGone).toBe(false);
});
