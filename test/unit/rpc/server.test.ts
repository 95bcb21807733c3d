import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { probeColumns, sampleColumns } from '../../../src/contract/telemetry.ts';
import { contractVersion } from '../../../src/contract/version.ts';
import { EngineServer, type ServerLimits } from '../../../src/rpc/server.ts';
import { decodeTelemetryFrame } from '../../../src/rpc/telemetry-frame.ts';
import { GatedPort } from '../../harness/gated-port.ts';
import { ManualSchedule } from '../../harness/manual-schedule.ts';
import { StubEngine } from '../../harness/stub-engine.ts';

let engine: StubEngine;
let port: GatedPort;
let time: ManualSchedule;

function serve(limits: Partial<ServerLimits> = {}): EngineServer {
  return new EngineServer(engine, port, { schedule: time.schedule, limits });
}

function serveGreeted(limits: Partial<ServerLimits> = {}): EngineServer {
  const server = serve(limits);
  port.receive({ type: 'hello', contractVersion });
  expect(port.takeTexts()).toEqual([{ type: 'hello', contractVersion }]);
  return server;
}

/** Lets promises of the engine settle. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

beforeEach(() => {
  engine = new StubEngine();
  port = new GatedPort();
  time = new ManualSchedule();
});

describe('what a client must not send', () => {
  const hello = JSON.stringify({ type: 'hello', contractVersion });
  test.each<[string, (string | ArrayBuffer)[], string]>([
    ['no JSON', [hello, '{"type":'], 'not JSON'],
    ['JSON of no known type', [hello, '{"type":"shutdown"}'], 'no known shape'],
    [
      'a known type with a field too many',
      [hello, '{"type":"unsubscribe","id":1,"force":true}'],
      'no known shape',
    ],
    ['an id that is no id', [hello, '{"type":"unsubscribe","id":-1}'], 'no known shape'],
    ['more text than allowed', [hello, `"${'x'.repeat(1000)}"`], 'too long'],
    ['bytes', [hello, new ArrayBuffer(16)], 'text only'],
    ['a call before hello', ['{"type":"call","id":1,"method":"engine.info","params":{}}'], 'first message'],
    ['hello twice', [hello, hello], 'first message'],
    [
      'an id twice',
      [
        hello,
        '{"type":"subscribe","id":4,"topic":"devices","params":{}}',
        '{"type":"call","id":4,"method":"engine.info","params":{}}',
      ],
      'used before',
    ],
    [
      'an acknowledgement of what was not sent',
      [
        hello,
        '{"type":"subscribe","id":1,"topic":"devices","params":{}}',
        '{"type":"ack","id":1,"received":1}',
      ],
      'not sent',
    ],
  ])('%s: refused with a reason, and the connection ends', (_name, messages, reason) => {
    serve({ maxRequestChars: 500 });
    for (const message of messages) port.receive(message);
    expect(port.closed).toBe(true);
    expect(port.takeTexts().at(-1)).toMatchObject({
      type: 'refused',
      error: { kind: 'usage', message: expect.stringContaining(reason) as unknown },
    });
    expect(engine.calls).toEqual([]);
    expect(engine.subscriptions.size).toBe(0);
  });

  test('another version of the contract, whatever else its hello says', () => {
    serve();
    port.receive({ type: 'hello', contractVersion: contractVersion + 1, features: ['new'] });
    expect(port.closed).toBe(true);
    expect(port.takeTexts()).toEqual([
      {
        type: 'refused',
        error: {
          kind: 'usage',
          message: `the client speaks version ${contractVersion + 1} of the contract, the engine version ${contractVersion}`,
          details: { clientVersion: contractVersion + 1, engineVersion: contractVersion },
          remedy: expect.stringContaining('Reload') as unknown,
        },
      },
    ]);
  });

  test('any text or bytes at all: never an exception, and never the engine', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.json(), fc.constant(hello)), { maxLength: 8 }),
        (messages) => {
          port = new GatedPort();
          serve();
          for (const message of messages) port.receive(message);
        },
      ),
      { numRuns: 300 },
    );
    expect(engine.calls).toEqual([]);
  });
});

describe('calls', () => {
  test('a method that does not exist, or belongs to every object, is an error of that call only', () => {
    serveGreeted();
    port.receive({ type: 'call', id: 1, method: 'device.explode', params: {} });
    port.receive({ type: 'call', id: 2, method: 'constructor', params: {} });
    expect(port.takeTexts()).toMatchObject([
      { type: 'error', id: 1, error: { kind: 'usage', details: { method: 'device.explode' } } },
      { type: 'error', id: 2, error: { kind: 'usage' } },
    ]);
    expect(port.closed).toBe(false);
  });

  test('parameters that the contract does not allow never reach the engine; the error names the place', () => {
    serveGreeted();
    port.receive({ type: 'call', id: 1, method: 'session.start', params: { deviceId: 7, record: true } });
    port.receive({ type: 'call', id: 2, method: 'session.stop', params: null });
    expect(port.takeTexts()).toMatchObject([
      { id: 1, error: { kind: 'bad-input', message: expect.stringContaining('deviceId') as unknown } },
      { id: 2, error: { kind: 'bad-input' } },
    ]);
    expect(engine.calls).toEqual([]);
  });

  test('a result that the contract does not allow is an internal error, not sent', async () => {
    serveGreeted();
    engine.answer('devices.list', () => [{ id: 'sim:x' }]);
    port.receive({ type: 'call', id: 1, method: 'devices.list', params: {} });
    await settled();
    expect(port.takeTexts()).toMatchObject([
      { type: 'error', id: 1, error: { kind: 'internal', details: { method: 'devices.list' } } },
    ]);
  });

  test('fields of a result that the contract does not know stay here', async () => {
    serveGreeted();
    engine.answer('engine.info', () => ({
      version: '1',
      contractVersion,
      platform: 'linux',
      host: 'web',
      token: 'secret',
    }));
    port.receive({ type: 'call', id: 1, method: 'engine.info', params: {} });
    await settled();
    expect(port.takeTexts()).toEqual([
      { type: 'result', id: 1, result: { version: '1', contractVersion, platform: 'linux', host: 'web' } },
    ]);
  });

  test('what the engine throws and is no AppError is internal; numbers that JSON lacks cross as words', async () => {
    serveGreeted();
    engine.answer('devices.list', () => {
      throw new TypeError('undefined is not a function');
    });
    engine.answer('engine.info', () => {
      throw new AppError('device-failed', 'odd', { details: { rttUs: Number.NaN, limit: Infinity, n: 3 } });
    });
    port.receive({ type: 'call', id: 1, method: 'devices.list', params: {} });
    port.receive({ type: 'call', id: 2, method: 'engine.info', params: {} });
    await settled();
    expect(port.takeTexts()).toMatchObject([
      { id: 1, error: { kind: 'internal', message: 'undefined is not a function' } },
      { id: 2, error: { kind: 'device-failed', details: { rttUs: 'NaN', limit: 'Infinity', n: 3 } } },
    ]);
  });

  test('no more calls at once than allowed', async () => {
    serveGreeted({ maxCalls: 2 });
    let finish: (value: unknown) => void = () => {};
    engine.answer('devices.list', () => new Promise((resolve) => (finish = resolve)));
    for (const id of [1, 2, 3]) port.receive({ type: 'call', id, method: 'devices.list', params: {} });
    expect(port.takeTexts()).toMatchObject([{ id: 3, error: { kind: 'usage' } }]);
    finish([]);
    await settled();
    port.receive({ type: 'call', id: 4, method: 'engine.info', params: {} });
    await settled();
    expect(port.takeTexts()).toMatchObject([
      { type: 'result', id: 2 },
      { type: 'result', id: 4 },
    ]);
  });

  test('a client that calls and reads nothing is let go', async () => {
    serveGreeted({ maxBufferedBytes: 1000 });
    port.bufferedBytes = 1001;
    port.receive({ type: 'call', id: 1, method: 'devices.list', params: {} });
    await settled();
    expect(port.closed).toBe(true);
  });
});

describe('topics', () => {
  const device = (id: string): object => ({
    id,
    mode: 'simulate',
    name: id,
    speed: 'super',
    state: 'available',
    problems: [],
  });

  test('what a subscription cannot be, it is told, and the engine is not asked', () => {
    serveGreeted();
    port.receive({ type: 'subscribe', id: 1, topic: 'weather', params: {} });
    port.receive({ type: 'subscribe', id: 2, topic: 'toString', params: {} });
    port.receive({ type: 'subscribe', id: 3, topic: 'events', params: { sessionId: 5 } });
    port.receive({ type: 'subscribe', id: 4, topic: 'telemetry', params: { sessionId: 's', table: 'all' } });
    expect(port.takeTexts()).toMatchObject([
      { type: 'ended', id: 1, error: { kind: 'usage' } },
      { type: 'ended', id: 2, error: { kind: 'usage' } },
      { type: 'ended', id: 3, error: { kind: 'bad-input' } },
      { type: 'ended', id: 4, error: { kind: 'bad-input' } },
    ]);
    expect(engine.subscriptions.size + engine.telemetry.size).toBe(0);
  });

  test('the error of an engine that refuses a subscription crosses', () => {
    const server = serveGreeted();
    engine.onSubscribe = () => {
      throw new AppError('no-such-session', 'no session s9', { details: { sessionId: 's9' } });
    };
    port.receive({ type: 'subscribe', id: 1, topic: 'events', params: { sessionId: 's9' } });
    expect(port.takeTexts()).toMatchObject([
      { type: 'ended', id: 1, error: { kind: 'no-such-session', details: { sessionId: 's9' } } },
    ]);
    expect(server.subscriptionCount).toBe(0);
  });

  test('a state topic: at most the credit unacknowledged, then only the newest, never the last lost', () => {
    serveGreeted({ creditMessages: 2 });
    port.receive({ type: 'subscribe', id: 1, topic: 'devices', params: {} });
    for (let n = 1; n <= 50; n++) engine.send('devices', [device(`sim:${n}`)]);
    expect(port.takeTexts()).toMatchObject([
      { type: 'event', id: 1, values: [[{ id: 'sim:1' }]] },
      { type: 'event', id: 1, values: [[{ id: 'sim:2' }]] },
    ]);
    port.receive({ type: 'ack', id: 1, received: 1 });
    expect(port.takeTexts()).toMatchObject([{ values: [[{ id: 'sim:50' }]] }]);
    port.receive({ type: 'ack', id: 1, received: 3 });
    expect(port.takeTexts()).toEqual([]);
  });

  test('events: all of them, in order, several to a message once they have piled up', () => {
    serveGreeted({ creditMessages: 1, maxEventsPerMessage: 10 });
    port.receive({ type: 'subscribe', id: 1, topic: 'events', params: { sessionId: 's' } });
    for (let n = 0; n < 25; n++) engine.send('events', { timeUs: n, kind: 'note', text: '' });
    const times: number[] = [];
    for (let received = 1; ; received++) {
      const messages = port.takeTexts() as { values: { timeUs: number }[] }[];
      if (messages.length === 0) break;
      expect(messages.length).toBe(1);
      for (const { values } of messages) times.push(...values.map(({ timeUs }) => timeUs));
      port.receive({ type: 'ack', id: 1, received });
    }
    expect(times).toEqual(Array.from({ length: 25 }, (_, n) => n));
  });

  test('events that nobody takes: the subscription ends with an error instead of leaving some out', () => {
    const server = serveGreeted({ creditMessages: 1, maxHeldEvents: 5 });
    port.receive({ type: 'subscribe', id: 1, topic: 'events', params: { sessionId: 's' } });
    for (let n = 0; n < 8; n++) engine.send('events', { timeUs: n, kind: 'note', text: '' });
    expect(port.takeTexts().at(-1)).toMatchObject({ type: 'ended', id: 1, error: { kind: 'timed-out' } });
    expect(server.subscriptionCount).toBe(0);
    expect(engine.subscriptions.size).toBe(0);
  });

  test.each(['devices', 'events'] as const)(
    'a value of %s that is none ends the subscription as internal',
    (topic) => {
      serveGreeted();
      port.receive({ type: 'subscribe', id: 1, topic, params: { sessionId: 's' } });
      engine.send(topic, { nonsense: true });
      expect(port.takeTexts()).toMatchObject([{ type: 'ended', id: 1, error: { kind: 'internal' } }]);
      expect(engine.subscriptions.size).toBe(0);
    },
  );

  test('unsubscribe, and the end of the port, end what the engine was asked', () => {
    const server = serveGreeted();
    port.receive({ type: 'subscribe', id: 1, topic: 'devices', params: {} });
    port.receive({ type: 'subscribe', id: 2, topic: 'sessions', params: {} });
    port.receive({
      type: 'subscribe',
      id: 3,
      topic: 'telemetry',
      params: { sessionId: 's', table: 'samples', historySeconds: 0 },
    });
    port.receive({ type: 'unsubscribe', id: 1 });
    expect([...engine.subscriptions].map(({ topic }) => topic)).toEqual(['sessions']);
    expect(engine.telemetry.size).toBe(1);
    port.close();
    expect(engine.subscriptions.size + engine.telemetry.size + server.subscriptionCount).toBe(0);
    expect(time.pendingCount).toBe(0);
  });

  test('a subscription that ends while the engine is still making it is disposed of', () => {
    serveGreeted();
    engine.onSubscribe = (_topic, send) => send({ nonsense: true } as never);
    port.receive({ type: 'subscribe', id: 1, topic: 'events', params: { sessionId: 's' } });
    expect(engine.subscriptions.size).toBe(0);
  });

  test('no more subscriptions than allowed', () => {
    serveGreeted({ maxSubscriptions: 1 });
    port.receive({ type: 'subscribe', id: 1, topic: 'devices', params: {} });
    port.receive({ type: 'subscribe', id: 2, topic: 'devices', params: {} });
    expect(port.takeTexts()).toMatchObject([{ type: 'ended', id: 2, error: { kind: 'usage' } }]);
  });
});

describe('telemetry', () => {
  const columns = probeColumns.length;
  const batch = (from: number, count: number, skippedRows = 0) => ({
    table: 'probes' as const,
    values: Float64Array.from({ length: count * columns }, (_, index) => from + Math.floor(index / columns)),
    skippedRows,
  });
  const subscribe = (): void =>
    port.receive({
      type: 'subscribe',
      id: 9,
      topic: 'telemetry',
      params: { sessionId: 's', table: 'probes', historySeconds: 60 },
    });
  const push = (...args: Parameters<typeof batch>): (void | Promise<void>)[] =>
    [...engine.telemetry].map((subscription) => subscription.push(batch(...args)));
  /** First row number, rows and skipped rows of each message posted since the last look. */
  const taken = (): (number | undefined)[][] =>
    port.takeFrames().map((buffer) => {
      const frame = decodeTelemetryFrame(buffer);
      expect(frame?.subscriptionId).toBe(9);
      return [frame?.batch.values[0], (frame?.batch.values.length ?? 0) / columns, frame?.batch.skippedRows];
    });

  test('waits for credit, is joined while it waits, and loses its oldest rows beyond the cap', () => {
    const server = serveGreeted({ creditMessages: 2, maxHeldRows: 10, maxRowsPerMessage: 100 });
    subscribe();
    for (let n = 0; n < 20; n++) push(n, 1);
    expect(taken()).toEqual([
      [0, 1, 0],
      [1, 1, 0],
    ]);
    expect(server.heldRows).toBe(10);
    port.receive({ type: 'ack', id: 9, received: 1 });
    expect(taken()).toEqual([[10, 10, 8]]);
    expect(server.heldRows).toBe(0);
    port.receive({ type: 'ack', id: 9, received: 3 });
    push(20, 2);
    expect(taken()).toEqual([[20, 2, 0]]);
  });

  test('waits while the port has not got rid of what it was given, and goes on by itself', () => {
    const server = serveGreeted({ highWaterBytes: 1000 });
    subscribe();
    port.bufferedBytes = 1001;
    push(0, 3);
    push(3, 3);
    expect(taken()).toEqual([]);
    expect(server.heldRows).toBe(6);
    time.advance(50_000);
    expect(taken()).toEqual([]);
    port.bufferedBytes = 0;
    time.advance(50_000);
    expect(taken()).toEqual([[0, 6, 0]]);
    expect(time.pendingCount).toBe(0);
  });

  test('an engine that heeds the answer is asked to wait exactly while rows are held', async () => {
    serveGreeted({ creditMessages: 1 });
    subscribe();
    expect(push(0, 1)).toEqual([undefined]);
    const [waits] = push(1, 1);
    expect(waits).toBeInstanceOf(Promise);
    let released = false;
    void Promise.resolve(waits).then(() => (released = true));
    await settled();
    expect(released).toBe(false);
    port.receive({ type: 'ack', id: 9, received: 1 });
    await settled();
    expect(released).toBe(true);
  });

  test('an engine that waits is not left waiting when the port closes', async () => {
    serveGreeted({ creditMessages: 1 });
    subscribe();
    push(0, 1);
    const [waits] = push(1, 1);
    port.close();
    await expect(waits).resolves.toBeUndefined();
  });

  test('rows that the engine itself left out are told where they are missing', () => {
    serveGreeted({ creditMessages: 1 });
    subscribe();
    push(0, 1);
    push(1, 2);
    push(8, 2, 5);
    taken();
    port.receive({ type: 'ack', id: 9, received: 1 });
    expect(taken()).toEqual([[1, 2, 0]]);
    port.receive({ type: 'ack', id: 9, received: 2 });
    expect(taken()).toEqual([[8, 2, 5]]);
  });

  test('rows of another table are a fault of the engine', () => {
    serveGreeted();
    subscribe();
    for (const { push: send } of engine.telemetry) {
      void send({ table: 'samples', values: new Float64Array(sampleColumns.length), skippedRows: 0 });
    }
    expect(port.takeTexts()).toMatchObject([{ type: 'ended', id: 9, error: { kind: 'internal' } }]);
    expect(engine.telemetry.size).toBe(0);
  });
});
