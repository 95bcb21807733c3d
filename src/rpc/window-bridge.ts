/**
 * What the Electron shell and the page in its window agree on. The page finds {@link WindowBridge} under
 * `window.queuescope` (in a browser there is none), listens for `message` events of its own window, and calls
 * `connect`; the event whose data is {@link enginePortMessage} brings the port to the engine as its only port.
 */

export const windowBridgeName = 'queuescope';

export const enginePortMessage = 'queuescope:engine-port';

/**
 * - `running`: `connect` will be answered
 * - `restarting`: the engine is gone and is started again; connect when it is running
 * - `failed`: it was started again too often; only a restart of the app helps
 */
type EngineProcessState = 'running' | 'restarting' | 'failed';

export interface EngineProcessStatus {
  readonly state: EngineProcessState;
  /** What happened, one sentence; empty while running. */
  readonly reason: string;
}

export interface WindowBridge {
  /** Asks for a port to the engine; it comes as a window message once the engine runs. */
  connect(): void;
  /** The status now and whenever it changes; the disposer ends it. */
  onEngineStatus(listener: (status: EngineProcessStatus) => void): () => void;
}
