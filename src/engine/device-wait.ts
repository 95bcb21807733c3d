import type { Dispose, Event } from '../base/emitter.ts';
import { type AppError, asAppError, type ErrorKind } from '../base/errors.ts';
import type { OpenedDevice } from './opened-device.ts';

/** How a device that went away is waited for. */
export interface WaitOptions {
  /** Opens the device. @throws AppError (as a rejection) while it can't be had */
  readonly open: () => Promise<OpenedDevice>;
  /** It may be there again. */
  readonly onChange: Event<void>;
  /** How long it is waited for; infinite: until {@link DeviceWait.cancel}. */
  readonly limitMs: number;
  /** An attempt was in vain; the next one follows. */
  readonly handleAttempt: (error: AppError) => void;
}

/** Between two attempts; each wait is twice the one before. */
const firstWaitMs = 250;
const longestWaitMs = 10_000;
/** `setTimeout` knows no more. */
const longestTimerMs = 2 ** 31 - 1;

/** After these another attempt would end the same way. */
const hopeless: ReadonlySet<ErrorKind> = new Set(['unsupported-device', 'bad-input', 'usage', 'internal']);

/** What came of a wait: the device, or why it is given up. */
export type WaitOutcome =
  | { readonly kind: 'opened'; readonly opened: OpenedDevice }
  | { readonly kind: 'failed'; readonly error: AppError }
  | { readonly kind: 'too-late' }
  | { readonly kind: 'cancelled' };

/**
 * Tries to open a device that went away: soon after something changed, and otherwise at growing distances. What is opened
 * when it is too late, is closed again.
 */
export class DeviceWait {
  readonly outcome: Promise<WaitOutcome>;
  readonly #options: WaitOptions;
  readonly #stopListening: Dispose;
  readonly #limit: NodeJS.Timeout | undefined;
  #finish: (outcome: WaitOutcome) => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #waitMs = firstWaitMs;
  #trying = false;
  #wanted = false;
  #over = false;

  constructor(options: WaitOptions) {
    this.#options = options;
    this.outcome = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#stopListening = options.onChange(() => this.#tryNow());
    if (options.limitMs <= longestTimerMs) {
      this.#limit = setTimeout(() => this.#end({ kind: 'too-late' }), options.limitMs);
    }
    this.#schedule();
  }

  cancel(): void {
    this.#end({ kind: 'cancelled' });
  }

  #schedule(): void {
    this.#timer = setTimeout(() => void this.#try(), this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, longestWaitMs);
  }

  #tryNow(): void {
    if (this.#over) return;
    this.#waitMs = firstWaitMs;
    if (this.#trying) {
      this.#wanted = true;
      return;
    }
    clearTimeout(this.#timer);
    void this.#try();
  }

  async #try(): Promise<void> {
    this.#trying = true;
    this.#wanted = false;
    try {
      const opened = await this.#options.open();
      if (this.#isOver()) await closeAgain(opened);
      else this.#end({ kind: 'opened', opened });
    } catch (thrown) {
      const error = asAppError(thrown);
      if (hopeless.has(error.kind)) this.#end({ kind: 'failed', error });
      else if (!this.#isOver()) this.#options.handleAttempt(error);
    }
    this.#trying = false;
    if (this.#isOver()) return;
    if (this.#wanted) void this.#try();
    else this.#schedule();
  }

  /** Read through a method: it may have been cancelled while something was waited for. */
  #isOver(): boolean {
    return this.#over;
  }

  #end(outcome: WaitOutcome): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#limit);
    this.#stopListening();
    this.#finish(outcome);
  }
}

async function closeAgain(opened: OpenedDevice): Promise<void> {
  opened.loop.close();
  await opened.close();
}
