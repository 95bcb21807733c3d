import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { connectChannel, portChannel, statusChannel } from '../../electron/process-messages.ts';
import {
  enginePortMessage,
  type EngineProcessStatus,
  type WindowBridge,
} from '../../src/rpc/window-bridge.ts';

const electron = vi.hoisted(() => ({
  exposed: new Map<string, unknown>(),
  sent: [] as string[],
  ipc: undefined as EventEmitter | undefined,
}));

vi.mock('electron', () => ({
  contextBridge: {
    exposeInMainWorld: (name: string, value: unknown) => electron.exposed.set(name, value),
  },
  ipcRenderer: {
    on: (channel: string, listener: (...args: unknown[]) => void) => electron.ipc?.on(channel, listener),
    send: (channel: string) => electron.sent.push(channel),
  },
}));

let ipc: EventEmitter;
let posted: unknown[][];

beforeEach(async () => {
  ipc = new EventEmitter();
  electron.ipc = ipc;
  posted = [];
  vi.stubGlobal('location', { origin: 'app://queuescope' });
  vi.stubGlobal('postMessage', (...args: unknown[]) => posted.push(args));
  vi.resetModules();
  electron.exposed.clear();
  electron.sent.length = 0;
  await import('../../electron/preload.ts');
});

afterEach(() => vi.unstubAllGlobals());

function bridge(): WindowBridge {
  expect([...electron.exposed.keys()]).toEqual(['queuescope']);
  return electron.exposed.get('queuescope') as WindowBridge;
}

test('the page gets two functions and nothing of Electron', () => {
  expect(Object.keys(bridge()).toSorted()).toEqual(['connect', 'onEngineStatus']);
  expect(electron.sent).toEqual([statusChannel]);
  bridge().connect();
  expect(electron.sent).toEqual([statusChannel, connectChannel]);
});

test('the port reaches the page, and only the page', () => {
  const port = {};
  ipc.emit(portChannel, { ports: [port] });
  expect(posted).toEqual([[enginePortMessage, 'app://queuescope', [port]]]);
});

test('the status is told now and when it changes, until it is no longer wanted', () => {
  const told: EngineProcessStatus[] = [];
  const early = bridge().onEngineStatus((status) => told.push(status));
  expect(told).toEqual([]);
  const restarting: EngineProcessStatus = { state: 'restarting', reason: 'The engine stopped.' };
  ipc.emit(statusChannel, {}, restarting);
  early();
  bridge().onEngineStatus((status) => told.push(status));
  const running: EngineProcessStatus = { state: 'running', reason: '' };
  ipc.emit(statusChannel, {}, running);
  expect(told).toEqual([restarting, restarting, running]);
});
