import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { probeColumns } from '../../../src/contract/telemetry.ts';
import { EngineClient } from '../../../src/rpc/client.ts';
import { memoryPortPair } from '../../../src/rpc/memory-port.ts';
import { EngineServer } from '../../../src/rpc/server.ts';
import { ManualSchedule } from '../../harness/manual-schedule.ts';
import { StubEngine } from '../../harness/stub-engine.ts';

describe('an in-process pair', () => {
  test('delivers in order, later than post, and counts what is on its way', async () => {
    const [left, right] = memoryPortPair();
    const received: (string | ArrayBuffer)[] = [];
    right.onMessage((message) => received.push(message));
    const bytes = new ArrayBuffer(8);
    left.post('one');
    left.post(bytes);
    expect(received).toEqual([]);
    expect(left.bufferedBytes).toBe(14);
    await Promise.resolve();
    await Promise.resolve();
    expect(received).toEqual(['one', bytes]);
    expect(left.bufferedBytes).toBe(0);
  });

  test('what was posted before close still arrives; both ends hear of the close once', async () => {
    const [left, right] = memoryPortPair();
    const heard: string[] = [];
    left.onClose(() => heard.push('left closed'));
    right.onClose(() => heard.push('right closed'));
    right.onMessage((message) => heard.push(String(message)));
    left.post('last');
    left.close();
    left.post('too late');
    right.close();
    await Promise.resolve();
    await Promise.resolve();
    left.close();
    expect(heard).toEqual(['left closed', 'right closed']);
  });

  test('what was posted before the other end closes is delivered first', async () => {
    const [left, right] = memoryPortPair();
    const heard: string[] = [];
    right.onClose(() => heard.push('closed'));
    right.onMessage((message) => heard.push(String(message)));
    left.post('last');
    left.close();
    await Promise.resolve();
    await Promise.resolve();
    expect(heard).toEqual(['last', 'closed']);
  });
});

test('an engine behind a pair is as good as the engine: results, errors, states, rows', async () => {
  const engine = new StubEngine();
  const { schedule } = new ManualSchedule();
  const [here, there] = memoryPortPair();
  const server = new EngineServer(engine, there, { schedule });
  const client = new EngineClient(here, { schedule });

  expect(await client.call('devices.list', {})).toEqual([]);
  engine.answer('session.stop', () => {
    throw new AppError('no-such-session', 'no session s1', {
      details: { sessionId: 's1' },
      remedy: 'Start one.',
    });
  });
  await expect(client.call('session.stop', { sessionId: 's1' })).rejects.toMatchObject({
    kind: 'no-such-session',
    message: 'no session s1',
    details: { sessionId: 's1' },
    remedy: 'Start one.',
  });

  engine.onSubscribe = (_topic, send) => send([] as never);
  const lists: unknown[] = [];
  const stop = client.subscribe('devices', {}, (devices) => lists.push(devices));
  const rows: number[] = [];
  const columns = probeColumns.length;
  engine.onSubscribeTelemetry = ({ push }) => {
    void push({ table: 'probes', values: new Float64Array(2 * columns).fill(1), skippedRows: 0 });
  };
  client.subscribeTelemetry({ sessionId: 's', table: 'probes', historySeconds: 1 }, ({ values }) => {
    rows.push(values.length / columns);
  });
  await client.call('engine.info', {});
  expect(lists).toEqual([[]]);
  expect(rows).toEqual([2]);

  stop();
  await client.call('engine.info', {});
  expect(engine.subscriptions.size).toBe(0);
  expect(server.subscriptionCount).toBe(1);
  client.close();
  await Promise.resolve();
  await Promise.resolve();
  expect(server.subscriptionCount).toBe(0);
  expect(engine.telemetry.size).toBe(0);
});
