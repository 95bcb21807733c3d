import type { ReadonlySignal } from '@preact/signals';
import type { AppError } from '../src/base/errors.ts';
import type { EngineApi } from '../src/contract/engine-api.ts';

export type LinkState =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'open'; readonly api: EngineApi }
  | {
      readonly phase: 'gone';
      /** What happened, one or two sentences. */
      readonly reason: string;
      /** When the next attempt is made, on the scale of `performance.now()`; undefined: none by itself. */
      readonly retryAtMs: number | undefined;
    };

/** The way to the engine, which may break and come back. Each time it is open there is a new `EngineApi`. */
export interface EngineLink {
  readonly state: ReadonlySignal<LinkState>;
  /** Something went wrong with the connection that did not end it; undefined while nothing has. */
  readonly problem: ReadonlySignal<AppError | undefined>;
  /** Tries now instead of waiting. */
  retry(): void;
}
