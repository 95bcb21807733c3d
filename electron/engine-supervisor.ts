import type { MessagePortMain, UtilityProcess } from 'electron';
import { type Dispose, Emitter } from '../src/base/emitter.ts';
import type { Log } from '../src/base/log.ts';
import type { Schedule } from '../src/rpc/schedule.ts';
import type { EngineProcessStatus } from '../src/rpc/window-bridge.ts';
import type { ElectronApi } from './electron-api.ts';
import type { PowerChange } from './engine-service.ts';
import type { FromEngineProcess, ToEngineProcess } from './process-messages.ts';

export interface EngineSupervisorOptions {
  readonly electron: Pick<ElectronApi, 'utilityProcess' | 'MessageChannelMain'>;
  /** The built engine-process.ts. */
  readonly script: string;
  readonly schedule: Schedule;
  readonly log: Log;
}

/** Waits before each new start; after the last one the engine is given up. */
export const restartDelaysUs: readonly number[] = [500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000];
/** An engine that ran this long is a sound one: its next crash is a first one again. */
export const soundAfterUs = 60_000_000;
/** How long devices may take to be given back. */
export const closeDeadlineUs = 5_000_000;

/** Keeps the engine's process running, and hands pages their way to it. */
export class EngineSupervisor {
  readonly #electron: EngineSupervisorOptions['electron'];
  readonly #script: string;
  readonly #schedule: Schedule;
  readonly #log: Log;
  readonly #statusEmitter = new Emitter<EngineProcessStatus>();
  readonly onStatus = this.#statusEmitter.event;
  #status: EngineProcessStatus = { state: 'restarting', reason: 'The engine is starting.' };
  #child: UtilityProcess | undefined;
  #crashes = 0;
  /** What the process itself said of its end. */
  #lastWords: string | undefined;
  #cancelTimer: Dispose = () => {};
  #closed: Promise<void> | undefined;
  #resolveClosed: () => void = () => {};

  constructor(options: EngineSupervisorOptions) {
    this.#electron = options.electron;
    this.#script = options.script;
    this.#schedule = options.schedule;
    this.#log = options.log;
  }

  get status(): EngineProcessStatus {
    return this.#status;
  }

  start(): void {
    const child = this.#electron.utilityProcess.fork(this.#script, [], {
      serviceName: 'Queuescope engine',
      stdio: 'inherit',
    });
    this.#child = child;
    this.#lastWords = undefined;
    child.on('message', (message: FromEngineProcess) => this.#handleMessage(message));
    child.on('exit', (code: number) => this.#handleExit(child, code));
  }

  /**
   * Makes a channel to the engine.
   * @returns the page's end; undefined unless the engine is running
   */
  connect(): MessagePortMain | undefined {
    if (this.#status.state !== 'running' || this.#closed !== undefined) return undefined;
    const { port1, port2 } = new this.#electron.MessageChannelMain();
    this.#post({ type: 'client' }, [port1]);
    return port2;
  }

  handlePower(change: PowerChange): void {
    if (this.#status.state === 'running') this.#post({ type: 'power', change });
  }

  /** Ends the engine; settles when it has given its devices back, or when it took too long and was killed. */
  close(): Promise<void> {
    if (this.#closed !== undefined) return this.#closed;
    this.#cancelTimer();
    this.#closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    const child = this.#child;
    if (child === undefined) {
      this.#resolveClosed();
      return this.#closed;
    }
    this.#post({ type: 'close' });
    this.#cancelTimer = this.#schedule(closeDeadlineUs, () => {
      this.#log.log('error', 'the engine did not give its devices back in time');
      child.kill();
      this.#resolveClosed();
    });
    return this.#closed;
  }

  #post(message: ToEngineProcess, ports: MessagePortMain[] = []): void {
    this.#child?.postMessage(message, ports);
  }

  #setStatus(status: EngineProcessStatus): void {
    this.#status = status;
    this.#statusEmitter.emit(status);
  }

  #handleMessage(message: FromEngineProcess): void {
    if (this.#closed !== undefined) return;
    switch (message.type) {
      case 'ready':
        this.#setStatus({ state: 'running', reason: '' });
        this.#cancelTimer = this.#schedule(soundAfterUs, () => (this.#crashes = 0));
        break;
      case 'failed':
        this.#lastWords = message.reason;
        break;
    }
  }

  #handleExit(child: UtilityProcess, code: number): void {
    if (child !== this.#child) return;
    this.#child = undefined;
    this.#cancelTimer();
    if (this.#closed !== undefined) {
      this.#resolveClosed();
      return;
    }
    const words = this.#lastWords ?? `its process ended with code ${code}`;
    this.#log.log('error', 'the engine is gone', { reason: words });
    const delayUs = restartDelaysUs[this.#crashes];
    this.#crashes++;
    if (delayUs === undefined) {
      this.#setStatus({ state: 'failed', reason: `The engine stopped again and again: ${words}.` });
      return;
    }
    this.#setStatus({ state: 'restarting', reason: `The engine stopped: ${words}.` });
    this.#cancelTimer = this.#schedule(delayUs, () => this.start());
  }
}
