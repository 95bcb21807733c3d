import { contextBridge, ipcRenderer } from 'electron';
import {
  enginePortMessage,
  type EngineProcessStatus,
  type WindowBridge,
  windowBridgeName,
} from '../src/rpc/window-bridge.ts';
import { connectChannel, portChannel, statusChannel } from './process-messages.ts';

/** All that the page gets of Electron: two functions, and the port when it comes. */

// A preload script runs in a window, whose names the other files of this folder do not have.
interface PageWindow {
  readonly location: { readonly origin: string };
  postMessage(message: unknown, targetOrigin: string, transfer: readonly unknown[]): void;
}
const page = globalThis as unknown as PageWindow;

let status: EngineProcessStatus | undefined;
const listeners = new Set<(status: EngineProcessStatus) => void>();

ipcRenderer.on(statusChannel, (_event, newStatus: EngineProcessStatus) => {
  status = newStatus;
  for (const listener of listeners) listener(newStatus);
});

ipcRenderer.on(portChannel, ({ ports }) => {
  page.postMessage(enginePortMessage, page.location.origin, [...ports]);
});

const bridge: WindowBridge = {
  connect() {
    ipcRenderer.send(connectChannel);
  },
  onEngineStatus(listener) {
    listeners.add(listener);
    if (status !== undefined) listener(status);
    return () => listeners.delete(listener);
  },
};
contextBridge.exposeInMainWorld(windowBridgeName, bridge);

ipcRenderer.send(statusChannel);
