import { beforeEach, describe, expect, test, vi } from 'vitest';
import { AppError, errorKinds } from '../../../src/base/errors.ts';
import { probeColumns, type TelemetryBatch } from '../../../src/contract/telemetry.ts';
import { contractVersion } from '../../../src/contract/version.ts';
import { EngineClient } from '../../../src/rpc/client.ts';
import { encodeTelemetryFrame } from '../../../src/rpc/telemetry-frame.ts';
import { GatedPort } from '../../harness/gated-port.ts';
import { ManualSchedule } from '../../harness/manual-schedule.ts';

let port: GatedPort;
let time: ManualSchedule;
let client: EngineClient;
let closedBy: AppError[];
let problems: AppError[];

beforeEach(() => {
  port = new GatedPort();
  time = new ManualSchedule();
  client = new EngineClient(port, { schedule: time.schedule });
  closedBy = [];
  problems = [];
  client.onClose((reason) => closedBy.push(reason));
  client.onProblem((problem) => problems.push(problem));
});

function greet(): void {
  port.receive({ type: 'hello', contractVersion });
  port.takeTexts();
}

describe('the greeting', () => {
  test('is the first message, and calls need not wait for its answer', async () => {
    const info = client.call('engine.info', {});
    expect(port.takeTexts()).toEqual([
      { type: 'hello', contractVersion },
      { type: 'call', id: 1, method: 'engine.info', params: {} },
    ]);
    const result = { version: '1', contractVersion, platform: 'linux', host: 'web' };
    port.receive({ type: 'hello', contractVersion });
    port.receive({ type: 'result', id: 1, result });
    await expect(client.ready).resolves.toBeUndefined();
    await expect(info).resolves.toEqual(result);
  });

  test('that the server refuses closes the client with the reason and fails the calls behind it', async () => {
    const info = client.call('engine.info', {});
    const error = {
      kind: 'usage',
      message: 'versions differ',
      details: { engineVersion: 9 },
      remedy: 'Reload.',
    };
    port.receive({ type: 'refused', error });
    await expect(info).rejects.toMatchObject({ kind: 'engine-gone', remedy: 'Reload.' });
    await expect(client.ready).rejects.toMatchObject({ kind: 'usage', details: { engineVersion: 9 } });
    expect(closedBy).toMatchObject([{ kind: 'usage', message: 'versions differ', remedy: 'Reload.' }]);
    expect(port.closed).toBe(true);
  });

  test('of an engine with another version closes the client', () => {
    port.receive({ type: 'hello', contractVersion: contractVersion + 1 });
    expect(closedBy).toMatchObject([{ kind: 'usage', details: { engineVersion: contractVersion + 1 } }]);
    expect(port.closed).toBe(true);
  });

  test('that never comes closes the client', async () => {
    time.advance(30_000_000);
    await expect(client.ready).rejects.toMatchObject({ kind: 'engine-gone' });
    expect(port.closed).toBe(true);
  });
});

describe('a call', () => {
  test.each(errorKinds)('brings an error of kind %s whole', async (kind) => {
    greet();
    const call = client.call('session.stop', { sessionId: 's' });
    const error = {
      kind,
      message: 'why',
      details: { path: '/dev/bus/usb/001/002', errno: 13, busy: true },
      remedy: 'Do this.',
    };
    port.receive({ type: 'error', id: 1, error });
    const thrown: unknown = await call.catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(AppError);
    expect(thrown).toMatchObject(error);
    expect(time.pendingCount).toBe(0);
  });

  test('has a deadline; an answer after it is let go', async () => {
    greet();
    const call = client.call('devices.list', {});
    time.advance(29_999_999);
    expect(client.closedBy).toBeUndefined();
    time.advance(1);
    await expect(call).rejects.toMatchObject({ kind: 'timed-out', details: { method: 'devices.list' } });
    port.receive({ type: 'result', id: 1, result: [] });
    expect(client.closedBy).toBeUndefined();
  });

  test('of a method that takes longer has a longer one', async () => {
    greet();
    const call = client.call('report.create', { recordingId: 'r', format: 'html' });
    time.advance(179_000_000);
    const result = [{ fileName: 'r.html', mediaType: 'text/html', text: '' }];
    port.receive({ type: 'result', id: 1, result });
    await expect(call).resolves.toEqual(result);
  });

  test('with parameters that are none does not leave', async () => {
    greet();
    await expect(client.call('session.note', { sessionId: 's', text: '' })).rejects.toMatchObject({
      kind: 'bad-input',
      message: expect.stringContaining('text') as unknown,
    });
    expect(port.posted).toEqual([]);
  });

  test('whose result is none is an internal error', async () => {
    greet();
    const call = client.call('devices.list', {});
    port.receive({ type: 'result', id: 1, result: { no: 'list' } });
    await expect(call).rejects.toMatchObject({ kind: 'internal', details: { method: 'devices.list' } });
    expect(client.closedBy).toBeUndefined();
  });

  test('that is open when the port closes fails as engine-gone, as do later ones', async () => {
    greet();
    const calls = [client.call('devices.list', {}), client.call('engine.info', {})];
    port.close();
    for (const call of calls) await expect(call).rejects.toMatchObject({ kind: 'engine-gone' });
    await expect(client.call('devices.list', {})).rejects.toMatchObject({ kind: 'engine-gone' });
    expect(closedBy.length).toBe(1);
    expect(time.pendingCount).toBe(0);
  });

  test('that is open when the client is closed here fails too, and the port is closed', async () => {
    greet();
    const call = client.call('devices.list', {});
    client.close();
    await expect(call).rejects.toMatchObject({ kind: 'engine-gone' });
    expect(port.closed).toBe(true);
    client.close();
    expect(closedBy.length).toBe(1);
  });
});

describe('what an engine must not send', () => {
  test.each<[string, string | ArrayBuffer]>([
    ['no JSON', '{'],
    ['JSON of no known shape', '{"type":"event","id":1}'],
    ['an unknown kind of error', '{"type":"error","id":1,"error":{"kind":"odd","message":"","details":{}}}'],
    ['an answer to a call that was never made', '{"type":"result","id":77,"result":null}'],
    ['a value of a subscription that was never made', '{"type":"event","id":77,"values":[]}'],
    ['bytes that are no telemetry', new ArrayBuffer(8)],
    ['another hello', JSON.stringify({ type: 'hello', contractVersion })],
    ['more text than allowed', `"${'x'.repeat(2000)}"`],
  ])('%s: closes the client as an internal error', async (_name, message) => {
    port = new GatedPort();
    client = new EngineClient(port, { schedule: time.schedule, maxReplyChars: 1000 });
    client.onClose((reason) => closedBy.push(reason));
    greet();
    const call = client.call('devices.list', {});
    port.receive(message);
    expect(closedBy).toMatchObject([{ kind: 'internal' }]);
    expect(port.closed).toBe(true);
    await expect(call).rejects.toMatchObject({ kind: 'engine-gone' });
  });
});

describe('a topic', () => {
  const event = (timeUs: number) => ({ timeUs, kind: 'note', text: '' });

  test('delivers values in order and acknowledges each message after its values', () => {
    greet();
    const times: number[] = [];
    client.subscribe('events', { sessionId: 's' }, ({ timeUs }) => {
      expect(port.posted).toEqual([]);
      times.push(timeUs);
    });
    expect(port.takeTexts()).toEqual([
      { type: 'subscribe', id: 1, topic: 'events', params: { sessionId: 's' } },
    ]);
    port.receive({ type: 'event', id: 1, values: [event(1), event(2)] });
    expect(port.takeTexts()).toEqual([{ type: 'ack', id: 1, received: 1 }]);
    port.receive({ type: 'event', id: 1, values: [event(3)] });
    expect(port.takeTexts()).toEqual([{ type: 'ack', id: 1, received: 2 }]);
    expect(times).toEqual([1, 2, 3]);
  });

  test('says nothing more once it was disposed of, even in the middle of a message', () => {
    greet();
    const times: number[] = [];
    const dispose = client.subscribe('events', { sessionId: 's' }, ({ timeUs }) => {
      times.push(timeUs);
      dispose();
    });
    port.takeTexts();
    port.receive({ type: 'event', id: 1, values: [event(1), event(2)] });
    port.receive({ type: 'event', id: 1, values: [event(3)] });
    dispose();
    expect(times).toEqual([1]);
    expect(port.takeTexts()).toEqual([{ type: 'unsubscribe', id: 1 }]);
  });

  test('that the engine ends is a problem to hear of', () => {
    greet();
    client.subscribe('events', { sessionId: 's9' }, () => {});
    const error = { kind: 'no-such-session', message: 'no session s9', details: {} };
    port.receive({ type: 'ended', id: 1, error });
    expect(problems).toMatchObject([error]);
    expect(client.closedBy).toBeUndefined();
  });

  test('survives a listener that throws', () => {
    greet();
    const listener = vi.fn(() => {
      throw new Error('drawing failed');
    });
    client.subscribe('events', { sessionId: 's' }, listener);
    port.receive({ type: 'event', id: 1, values: [event(1), event(2)] });
    expect(listener).toHaveBeenCalledTimes(2);
    expect(problems).toMatchObject([{ kind: 'internal', message: 'drawing failed' }, {}]);
    expect(port.takeTexts().at(-1)).toEqual({ type: 'ack', id: 1, received: 1 });
  });

  test('with a value that is none closes the client: the ends do not understand each other', () => {
    greet();
    client.subscribe('devices', {}, () => {});
    port.receive({ type: 'event', id: 1, values: ['device'] });
    expect(closedBy).toMatchObject([{ kind: 'internal' }]);
  });

  test('on a closed client is over before it begins', () => {
    port.close();
    client.subscribe('devices', {}, () => {})();
    expect(port.posted.length).toBe(1);
  });

  test('with parameters that are none is refused here', () => {
    greet();
    expect(() => client.subscribe('events', { sessionId: 1 } as never, () => {})).toThrow(AppError);
    expect(port.posted).toEqual([]);
  });
});

describe('telemetry', () => {
  const params = { sessionId: 's', table: 'probes', historySeconds: 60 } as const;
  const frame = (value: number, skippedRows = 0): ArrayBuffer =>
    encodeTelemetryFrame(1, 'probes', skippedRows, [new Float64Array(probeColumns.length).fill(value)]);

  test('goes to the listener one batch at a time, each acknowledged when it is dealt with', async () => {
    greet();
    const batches: TelemetryBatch[] = [];
    const finish: (() => void)[] = [];
    client.subscribeTelemetry(params, (batch) => {
      batches.push(batch);
      return new Promise<void>((resolve) => finish.push(resolve));
    });
    port.takeTexts();
    port.receive(frame(1));
    port.receive(frame(2, 40));
    expect(batches.length).toBe(1);
    expect(port.takeTexts()).toEqual([]);
    finish[0]?.();
    await vi.waitFor(() => expect(batches.length).toBe(2));
    expect(port.takeTexts()).toEqual([{ type: 'ack', id: 1, received: 1 }]);
    expect(batches[1]).toMatchObject({ table: 'probes', skippedRows: 40 });
    expect(batches[1]?.values[0]).toBe(2);
    finish[1]?.();
    await vi.waitFor(() => expect(port.takeTexts()).toEqual([{ type: 'ack', id: 1, received: 2 }]));
  });

  test('whose listener fails is acknowledged all the same, and the failure is heard of', async () => {
    greet();
    client.subscribeTelemetry(params, () => Promise.reject(new Error('disk full')));
    port.receive(frame(1));
    port.receive(frame(2));
    await vi.waitFor(() =>
      expect(problems).toMatchObject([{ message: 'disk full' }, { message: 'disk full' }]),
    );
    await vi.waitFor(() => expect(port.takeTexts().at(-1)).toEqual({ type: 'ack', id: 1, received: 2 }));
  });

  test('that was on its way when it was disposed of is let go', () => {
    greet();
    const listener = vi.fn();
    client.subscribeTelemetry(params, listener)();
    port.receive(frame(1));
    expect(listener).not.toHaveBeenCalled();
    expect(client.closedBy).toBeUndefined();
  });
});
