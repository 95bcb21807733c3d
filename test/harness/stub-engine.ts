import type { Dispose } from '../../src/base/emitter.ts';
import { AppError } from '../../src/base/errors.ts';
import type { EngineApi } from '../../src/contract/engine-api.ts';
import type { MethodName, MethodParams, MethodResult } from '../../src/contract/methods.ts';
import type { TelemetryBatch } from '../../src/contract/telemetry.ts';
import type { TelemetryParams, TopicName, TopicParams, TopicValue } from '../../src/contract/topics.ts';
import { contractVersion } from '../../src/contract/version.ts';

type Answer = (params: never) => unknown;

interface StubSubscription {
  readonly topic: TopicName;
  readonly params: unknown;
  readonly listener: (value: never) => void;
}

export interface StubTelemetry {
  readonly params: TelemetryParams;
  /** Answers as the listener does. */
  readonly push: (batch: TelemetryBatch) => void | Promise<void>;
}

/** An engine without anything behind it: answers what a test has it answer, sends what a test sends. */
export class StubEngine implements EngineApi {
  readonly calls: { readonly method: MethodName; readonly params: unknown }[] = [];
  readonly subscriptions = new Set<StubSubscription>();
  readonly telemetry = new Set<StubTelemetry>();
  /** Called with each new subscription, before `subscribe` returns, as an engine that has a state to send does. */
  onSubscribe: (topic: TopicName, send: (value: never) => void) => void = () => {};
  onSubscribeTelemetry: (subscription: StubTelemetry) => void = () => {};
  readonly #answers = new Map<MethodName, Answer>();

  constructor() {
    this.answer('engine.info', () => ({ version: '0.0.0', contractVersion, platform: 'test', host: 'web' }));
    this.answer('devices.list', () => []);
  }

  /** @param answer may return what the contract forbids: that is what some tests are about */
  answer<M extends MethodName>(method: M, answer: (params: MethodParams<M>) => unknown): void {
    this.#answers.set(method, answer);
  }

  async call<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    this.calls.push({ method, params });
    const answer = this.#answers.get(method);
    if (answer === undefined) throw new AppError('internal', `the stub has no answer to ${method}`);
    return (await answer(params as never)) as MethodResult<M>;
  }

  subscribe<T extends TopicName>(
    topic: T,
    params: TopicParams<T>,
    listener: (value: TopicValue<T>) => void,
  ): Dispose {
    const subscription: StubSubscription = { topic, params, listener };
    this.subscriptions.add(subscription);
    this.onSubscribe(topic, listener);
    return () => void this.subscriptions.delete(subscription);
  }

  subscribeTelemetry(
    params: TelemetryParams,
    listener: (batch: TelemetryBatch) => void | Promise<void>,
  ): Dispose {
    const subscription: StubTelemetry = { params, push: listener };
    this.telemetry.add(subscription);
    this.onSubscribeTelemetry(subscription);
    return () => void this.telemetry.delete(subscription);
  }

  /** Sends a value, whatever it is, to every subscriber of a topic. */
  send(topic: TopicName, value: unknown): void {
    for (const subscription of this.subscriptions) {
      if (subscription.topic === topic) subscription.listener(value as never);
    }
  }
}
