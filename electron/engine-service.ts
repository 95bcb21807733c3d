import type { MessagePortMain } from 'electron';
import { asAppError } from '../src/base/errors.ts';
import type { Log } from '../src/base/log.ts';
import type { EngineApi } from '../src/contract/engine-api.ts';
import type { Schedule } from '../src/rpc/schedule.ts';
import { EngineServer } from '../src/rpc/server.ts';
import { portOfMainMessagePort } from './main-message-port.ts';
import type { FromEngineProcess, ToEngineProcess } from './process-messages.ts';

/** The machine is about to sleep, or has woken up. */
export type PowerChange = 'suspend' | 'resume';

/** What the composition root puts together. */
export interface RunningEngine {
  readonly api: EngineApi;
  /** Gives every device back and closes every recording. */
  close(): Promise<void>;
  /** For an engine that wants to know. */
  handlePower?(change: PowerChange): void;
}

/** The engine's process as seen from inside: Electron's `process.parentPort`. */
export interface ParentPort {
  on(
    event: 'message',
    listener: (message: { readonly data: unknown; readonly ports: readonly MessagePortMain[] }) => void,
  ): unknown;
  postMessage(message: FromEngineProcess): void;
}

export interface EngineServiceOptions {
  readonly parent: ParentPort;
  createEngine(): Promise<RunningEngine>;
  /** Ends the process. */
  exit(code: number): void;
  readonly schedule: Schedule;
  readonly log: Log;
}

/** What runs in the engine's process: one engine, and a server for every page that the main process lets in. */
export async function runEngineService(options: EngineServiceOptions): Promise<void> {
  const { parent, exit, schedule, log } = options;
  let engine: RunningEngine;
  try {
    engine = await options.createEngine();
  } catch (thrown) {
    const { message } = asAppError(thrown);
    log.log('error', 'the engine does not start', { reason: message });
    parent.postMessage({ type: 'failed', reason: message });
    exit(1);
    return;
  }
  const servers = new Set<EngineServer>();
  let closing = false;
  const close = async (): Promise<void> => {
    if (closing) return;
    closing = true;
    for (const server of servers) server.close();
    try {
      await engine.close();
      exit(0);
    } catch (thrown) {
      log.log('error', 'the engine does not end cleanly', { reason: asAppError(thrown).message });
      exit(1);
    }
  };
  parent.on('message', ({ data, ports }) => {
    const message = data as ToEngineProcess;
    switch (message.type) {
      case 'client': {
        const [channelEnd] = ports;
        if (channelEnd === undefined || closing) return;
        const port = portOfMainMessagePort(channelEnd);
        const server = new EngineServer(engine.api, port, { schedule, log });
        servers.add(server);
        port.onClose(() => servers.delete(server));
        break;
      }
      case 'power':
        engine.handlePower?.(message.change);
        break;
      case 'close':
        void close();
        break;
    }
  });
  parent.postMessage({ type: 'ready' });
}
