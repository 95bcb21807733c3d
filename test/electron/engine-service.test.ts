import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type ParentPort, runEngineService, type RunningEngine } from '../../electron/engine-service.ts';
import { portOfMainMessagePort } from '../../electron/main-message-port.ts';
import type { FromEngineProcess, ToEngineProcess } from '../../electron/process-messages.ts';
import { AppError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { EngineClient } from '../../src/rpc/client.ts';
import { type PageMessagePort, portOfPageMessagePort } from '../../src/rpc/page-message-port.ts';
import { ManualSchedule } from '../harness/manual-schedule.ts';
import { StubEngine } from '../harness/stub-engine.ts';

/**
 * Node's own message channel stands for Electron's: the page's end has the same interface, the main process' end differs
 * in how an event is listened to.
 */
function mainEndOf(end: MessagePort) {
  return {
    postMessage: (message: unknown) => end.postMessage(message),
    start: () => end.start(),
    close: () => end.close(),
    on(event: 'message' | 'close', listener: (value: never) => void) {
      if (event === 'message') end.addEventListener('message', listener as never);
      else end.on('close', listener as never);
      return this;
    },
  };
}

let said: FromEngineProcess[];
let tell: (message: ToEngineProcess, ports?: readonly unknown[]) => void;
let parent: ParentPort;
let engine: StubEngine;
let exits: number[];
const { schedule } = new ManualSchedule();

beforeEach(() => {
  said = [];
  exits = [];
  engine = new StubEngine();
  parent = {
    on: (_event, listener) => (tell = (data, ports = []) => listener({ data, ports: ports as never })),
    postMessage: (message) => said.push(message),
  };
});

async function run(running: Partial<RunningEngine> = {}): Promise<void> {
  await runEngineService({
    parent,
    createEngine: async () => ({ api: engine, close: async () => {}, ...running }),
    exit: (code) => exits.push(code),
    schedule,
    log: silentLog,
  });
}

function connect(): EngineClient {
  const { port1, port2 } = new MessageChannel();
  tell({ type: 'client' }, [mainEndOf(port1)]);
  return new EngineClient(portOfPageMessagePort(port2 as unknown as PageMessagePort), { schedule });
}

describe("the engine's process", () => {
  test('says that it is ready, and serves every page over its own channel', async () => {
    await run();
    expect(said).toEqual([{ type: 'ready' }]);
    const [one, other] = [connect(), connect()];
    expect(await one.call('devices.list', {})).toEqual([]);
    one.close();
    expect(await other.call('devices.list', {})).toEqual([]);
    other.close();
  });

  test('lets go of what a page had asked for when the page is gone', async () => {
    await run();
    const client = connect();
    client.subscribe('devices', {}, () => {});
    await vi.waitFor(() => expect(engine.subscriptions.size).toBe(1));
    client.close();
    await vi.waitFor(() => expect(engine.subscriptions.size).toBe(0));
  });

  test('gives everything back before it ends, and tells its pages', async () => {
    let finish: () => void = () => {};
    await run({ close: () => new Promise((resolve) => (finish = resolve)) });
    const client = connect();
    await client.ready;
    const gone = new Promise((resolve) => client.onClose(resolve));
    tell({ type: 'close' });
    tell({ type: 'close' });
    await expect(gone).resolves.toMatchObject({ kind: 'engine-gone' });
    expect(exits).toEqual([]);
    finish();
    await vi.waitFor(() => expect(exits).toEqual([0]));
  });

  test('that cannot give everything back ends as failed', async () => {
    await run({ close: () => Promise.reject(new AppError('device-failed', 'stuck')) });
    tell({ type: 'close' });
    await vi.waitFor(() => expect(exits).toEqual([1]));
  });

  test('that cannot start says why before it ends', async () => {
    await runEngineService({
      parent,
      createEngine: () => Promise.reject(new AppError('access-denied', 'no USB here')),
      exit: (code) => exits.push(code),
      schedule,
      log: silentLog,
    });
    expect(said).toEqual([{ type: 'failed', reason: 'no USB here' }]);
    expect(exits).toEqual([1]);
  });

  test('hands on that the machine sleeps, to an engine that wants to know', async () => {
    const handlePower = vi.fn();
    await run({ handlePower });
    tell({ type: 'power', change: 'suspend' });
    expect(handlePower).toHaveBeenCalledWith('suspend');
    await run();
    tell({ type: 'power', change: 'resume' });
  });
});

test('telemetry crosses a channel as bytes', async () => {
  const { port1, port2 } = new MessageChannel();
  const main = portOfMainMessagePort(mainEndOf(port1) as never);
  const page = portOfPageMessagePort(port2 as unknown as PageMessagePort);
  const received = new Promise((resolve) => page.onMessage(resolve));
  main.post(new Float64Array([1.5, 2.5]).buffer);
  expect([...new Float64Array((await received) as ArrayBuffer)]).toEqual([1.5, 2.5]);
  const closed = new Promise<void>((resolve) => page.onClose(resolve));
  main.close();
  await closed;
});
