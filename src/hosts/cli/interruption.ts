import { exitCodes } from '../../base/errors.ts';

export interface InterruptionOptions {
  /** Our own fault, somewhere outside of any command's promise: nobody else hears of it. */
  readonly handleFault: (thrown: unknown) => void;
  /** Gives back all that the process has: devices, limits, recordings. */
  readonly close: () => Promise<void>;
}

/** A closed terminal counts as a wish to end, like Ctrl-C. */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const faults = ['uncaughtException', 'unhandledRejection'] as const;
/** How long giving back may take after a fault. */
const faultCloseMs = 10_000;
/** A reader that went away (`| head`), or a terminal that did: no fault. */
const readerGoneCodes: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

/**
 * Whatever wants a command to end before it is done: a signal, a reader that went away, a full disk behind standard
 * output, a fault of our own. None of them may end the process at once, because devices and recordings would be left
 * behind as they are; only a second signal does.
 */
export class Interruption {
  readonly #process: NodeJS.Process;
  readonly #options: InterruptionOptions;
  readonly #abort = new AbortController();
  #readerGone = false;
  #writeFailure: NodeJS.ErrnoException | undefined;
  #faulty = false;

  constructor(process: NodeJS.Process, options: InterruptionOptions) {
    this.#process = process;
    this.#options = options;
    for (const signal of signals) process.on(signal, this.#handleSignal);
    for (const fault of faults) process.on(fault, this.#handleFault);
    process.stdout.on('error', this.#handleStdoutError);
    process.stderr.on('error', this.#handleStderrError);
  }

  /** Aborted once; whoever has something to end listens. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Nobody reads the output any more: that a command was interrupted is no failure then. */
  get readerGone(): boolean {
    return this.#readerGone;
  }

  /** Why standard output could not be written, other than for a reader that went away. */
  get writeFailure(): NodeJS.ErrnoException | undefined {
    return this.#writeFailure;
  }

  /** Stops listening. The streams are still listened to: what was written may fail after the command has ended. */
  dispose(): void {
    for (const signal of signals) this.#process.off(signal, this.#handleSignal);
    for (const fault of faults) this.#process.off(fault, this.#handleFault);
  }

  readonly #handleSignal = (): void => {
    // A second one means that waiting any longer is not wanted.
    if (this.#abort.signal.aborted) this.#process.exit(exitCodes.interrupted);
    this.#abort.abort();
  };

  readonly #handleStdoutError = (error: NodeJS.ErrnoException): void => {
    if (readerGoneCodes.has(error.code)) this.#readerGone = true;
    else this.#writeFailure ??= error;
    this.#abort.abort();
  };

  readonly #handleStderrError = (error: NodeJS.ErrnoException): void => {
    if (readerGoneCodes.has(error.code)) this.#readerGone = true;
    this.#abort.abort();
  };

  readonly #handleFault = (thrown: unknown): void => {
    this.#options.handleFault(thrown);
    if (this.#faulty) return;
    this.#faulty = true;
    const end = (): void => this.#process.exit(exitCodes.internal);
    setTimeout(end, faultCloseMs);
    // Whether that works or not: there is nothing more to be done.
    this.#options.close().then(end, end);
  };
}
