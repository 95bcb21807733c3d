import type { Dispose } from '../base/emitter.ts';
import type { MethodName, MethodParams, MethodResult } from './methods.ts';
import type { TelemetryBatch } from './telemetry.ts';
import type { TelemetryParams, TopicName, TopicParams, TopicValue } from './topics.ts';

/**
 * The engine as the contract shows it. `rpc/server` offers an implementation of it over a port, `rpc/client` is one
 * again at the other end; so a window, a browser page, the command line and a test all hold the same thing.
 */
export interface EngineApi {
  /** @throws AppError (as a rejection) with the kind and details the engine gave */
  call<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>>;

  subscribe<T extends TopicName>(
    topic: T,
    params: TopicParams<T>,
    listener: (value: TopicValue<T>) => void,
  ): Dispose;

  /**
   * @param listener gets each batch and answers when it has dealt with it; nothing new comes before that, and what
   * would have come waits at the engine, up to a cap, or is counted as skipped.
   */
  subscribeTelemetry(
    params: TelemetryParams,
    listener: (batch: TelemetryBatch) => void | Promise<void>,
  ): Dispose;
}
