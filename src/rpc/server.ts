import type { Dispose } from '../base/emitter.ts';
import { AppError, asAppError } from '../base/errors.ts';
import { type Log, silentLog } from '../base/log.ts';
import type { EngineApi } from '../contract/engine-api.ts';
import { type MethodName, methods } from '../contract/methods.ts';
import { telemetryTables } from '../contract/telemetry.ts';
import { telemetryParamsSchema, type TopicName, topics } from '../contract/topics.ts';
import { contractVersion } from '../contract/version.ts';
import { badParams, badResult, versionMismatch } from './contract-errors.ts';
import {
  type ClientMessage,
  clientMessageSchema,
  errorToMessage,
  firstIssue,
  maxRequestChars,
  parseMessage,
  type ServerMessage,
  telemetryTopic,
} from './messages.ts';
import { EventQueue, type OutgoingQueue, StateQueue, TelemetryQueue } from './outgoing-queue.ts';
import type { Port } from './port.ts';
import type { Schedule } from './schedule.ts';

/** What one client can make the server hold; whatever the client does, memory stays within these. */
export interface ServerLimits {
  readonly maxRequestChars: number;
  /** Calls that are not answered yet. */
  readonly maxCalls: number;
  readonly maxSubscriptions: number;
  /** Messages of one subscription that the client has not acknowledged. */
  readonly creditMessages: number;
  /** Telemetry rows that wait for credit; beyond it the oldest are dropped and counted. */
  readonly maxHeldRows: number;
  readonly maxRowsPerMessage: number;
  /** Events that wait for credit; beyond it the subscription ends with an error, for events are never left out. */
  readonly maxHeldEvents: number;
  readonly maxEventsPerMessage: number;
  /** While the port holds more than this, subscriptions wait. */
  readonly highWaterBytes: number;
  /** A client that lets the port hold more than this reads nothing at all: the connection ends. */
  readonly maxBufferedBytes: number;
  /** How soon the port is looked at again when nothing else would. */
  readonly retryUs: number;
}

const defaultServerLimits: ServerLimits = {
  maxRequestChars,
  maxCalls: 64,
  maxSubscriptions: 128,
  creditMessages: 4,
  maxHeldRows: 36_000,
  maxRowsPerMessage: 2_000,
  maxHeldEvents: 20_000,
  maxEventsPerMessage: 500,
  highWaterBytes: 1 << 20,
  maxBufferedBytes: 1 << 28,
  retryUs: 50_000,
};

export interface ServerOptions {
  readonly schedule: Schedule;
  readonly log?: Log;
  readonly limits?: Partial<ServerLimits>;
}

interface Subscription {
  readonly id: number;
  readonly queue: OutgoingQueue;
  /** Messages sent and acknowledged so far. */
  sent: number;
  acknowledged: number;
  /** The engine's; not there yet while the engine makes the subscription. */
  dispose: Dispose | undefined;
  /** Waits for an empty queue, or the end of the subscription. */
  emptied: Deferred | undefined;
}

interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

/**
 * Offers an engine to the client at the other end of a port, until either closes it. One a client. What a client must
 * not do (no JSON, no known shape, a wrong version, a used id) ends the connection with a `refused` message that says why;
 * what merely cannot be answered (no such method, bad parameters) is the error of that call.
 */
export class EngineServer {
  readonly #engine: EngineApi;
  readonly #port: Port;
  readonly #schedule: Schedule;
  readonly #log: Log;
  readonly #limits: ServerLimits;
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #stopListening: Dispose[] = [];
  readonly #calls = new Set<number>();
  #greeted = false;
  #open = true;
  #lastId = 0;
  #cancelRetry: Dispose | undefined;

  constructor(engine: EngineApi, port: Port, options: ServerOptions) {
    this.#engine = engine;
    this.#port = port;
    this.#schedule = options.schedule;
    this.#log = options.log ?? silentLog;
    this.#limits = { ...defaultServerLimits, ...options.limits };
    this.#stopListening.push(
      port.onMessage((message) => this.#handleMessage(message)),
      port.onClose(() => this.#end()),
    );
  }

  /** Subscriptions that are served now. */
  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  /** Telemetry rows held for the client, over all its subscriptions. */
  get heldRows(): number {
    let rows = 0;
    for (const { queue } of this.#subscriptions.values()) {
      if (queue instanceof TelemetryQueue) rows += queue.heldRows;
    }
    return rows;
  }

  close(): void {
    if (!this.#open) return;
    this.#end();
    this.#port.close();
  }

  #end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#cancelRetry?.();
    for (const stop of this.#stopListening) stop();
    for (const subscription of this.#subscriptions.values()) this.#remove(subscription);
  }

  #refuse(error: AppError): void {
    if (!this.#open) return;
    this.#log.log('warn', 'connection refused', { reason: error.message });
    this.#port.post(
      JSON.stringify({ type: 'refused', error: errorToMessage(error) } satisfies ServerMessage),
    );
    this.close();
  }

  #post(message: ServerMessage): void {
    if (!this.#open) return;
    this.#port.post(JSON.stringify(message));
    if (this.#port.bufferedBytes <= this.#limits.maxBufferedBytes) return;
    this.#log.log('warn', 'connection closed: its client does not read', { bytes: this.#port.bufferedBytes });
    this.close();
  }

  #handleMessage(text: string | ArrayBuffer): void {
    if (!this.#open) return;
    if (typeof text !== 'string') {
      this.#refuse(new AppError('usage', 'a client sends text only'));
      return;
    }
    const parsed = parseMessage(clientMessageSchema, text, this.#limits.maxRequestChars);
    if (!parsed.ok) {
      this.#refuse(new AppError('usage', parsed.reason));
      return;
    }
    const message = parsed.value;
    if (this.#greeted === (message.type === 'hello')) {
      this.#refuse(new AppError('usage', 'the first message, and no other, is hello'));
      return;
    }
    this.#handle(message);
  }

  #handle(message: ClientMessage): void {
    switch (message.type) {
      case 'hello':
        this.#handleHello(message.contractVersion);
        break;
      case 'call':
        if (this.#takeId(message.id)) this.#handleCall(message.id, message.method, message.params);
        break;
      case 'subscribe':
        if (this.#takeId(message.id)) this.#handleSubscribe(message.id, message.topic, message.params);
        break;
      case 'unsubscribe': {
        const subscription = this.#subscriptions.get(message.id);
        if (subscription !== undefined) this.#remove(subscription);
        break;
      }
      case 'ack':
        this.#handleAck(message.id, message.received);
        break;
    }
  }

  #handleHello(clientVersion: number): void {
    if (clientVersion !== contractVersion) {
      this.#refuse(versionMismatch(clientVersion, contractVersion));
      return;
    }
    this.#greeted = true;
    this.#post({ type: 'hello', contractVersion });
  }

  /** Ids rise, so that one that was used before is known without a list of them. */
  #takeId(id: number): boolean {
    if (id > this.#lastId) {
      this.#lastId = id;
      return true;
    }
    this.#refuse(new AppError('usage', `id ${id} was used before`));
    return false;
  }

  #handleCall(id: number, method: string, params: unknown): void {
    if (!Object.hasOwn(methods, method)) {
      this.#answerError(id, new AppError('usage', `there is no method ${method}`, { details: { method } }));
      return;
    }
    if (this.#calls.size >= this.#limits.maxCalls) {
      this.#answerError(
        id,
        new AppError('usage', `more than ${this.#limits.maxCalls} calls are not answered yet`),
      );
      return;
    }
    const name = method as MethodName;
    const parsed = methods[name].params.safeParse(params);
    if (!parsed.success) {
      this.#answerError(id, badParams(name, firstIssue(parsed.error)));
      return;
    }
    this.#calls.add(id);
    void this.#call(id, name, parsed.data);
  }

  async #call(id: number, method: MethodName, params: unknown): Promise<void> {
    try {
      const result = await this.#engine.call(method, params as never);
      const parsed = methods[method].result.safeParse(result);
      if (!parsed.success) {
        throw badResult(method, firstIssue(parsed.error));
      }
      this.#calls.delete(id);
      this.#post({ type: 'result', id, result: parsed.data });
    } catch (thrown) {
      this.#calls.delete(id);
      this.#answerError(id, asAppError(thrown));
    }
  }

  #answerError(id: number, error: AppError): void {
    this.#logFault(error);
    this.#post({ type: 'error', id, error: errorToMessage(error) });
  }

  #handleSubscribe(id: number, topic: string, params: unknown): void {
    try {
      this.#subscribe(id, topic, params);
    } catch (thrown) {
      this.#endSubscription(id, asAppError(thrown));
    }
  }

  #subscribe(id: number, topic: string, params: unknown): void {
    if (this.#subscriptions.size >= this.#limits.maxSubscriptions) {
      throw new AppError('usage', `there are ${this.#limits.maxSubscriptions} subscriptions already`);
    }
    if (topic === telemetryTopic) {
      this.#subscribeTelemetry(id, params);
      return;
    }
    if (!Object.hasOwn(topics, topic)) {
      throw new AppError('usage', `there is no topic ${topic}`, { details: { topic } });
    }
    const name = topic as TopicName;
    const parsed = topics[name].params.safeParse(params);
    if (!parsed.success) throw badParams(name, firstIssue(parsed.error));
    const { kind, value: schema } = topics[name];
    const queue =
      kind === 'state'
        ? new StateQueue(id, schema)
        : new EventQueue(id, schema, this.#limits.maxEventsPerMessage);
    const subscription = this.#add(id, queue);
    const dispose = this.#engine.subscribe(name, parsed.data, (value) => {
      if (!this.#subscriptions.has(id)) return;
      try {
        queue.push(value);
        if (queue instanceof EventQueue && queue.length > this.#limits.maxHeldEvents) {
          throw new AppError('timed-out', `the reader of ${name} did not keep up`, {
            details: { topic: name },
          });
        }
        this.#pump(subscription);
      } catch (thrown) {
        this.#endSubscription(id, asAppError(thrown));
      }
    });
    this.#attach(subscription, dispose);
  }

  #subscribeTelemetry(id: number, params: unknown): void {
    const parsed = telemetryParamsSchema.safeParse(params);
    if (!parsed.success) throw badParams(telemetryTopic, firstIssue(parsed.error));
    const { maxHeldRows, maxRowsPerMessage } = this.#limits;
    const { table } = parsed.data;
    const queue = new TelemetryQueue(id, table, maxHeldRows, maxRowsPerMessage);
    const subscription = this.#add(id, queue);
    const dispose = this.#engine.subscribeTelemetry(parsed.data, (batch) => {
      if (!this.#subscriptions.has(id)) return undefined;
      if (batch.table !== table || batch.values.length % telemetryTables[table].length !== 0) {
        this.#endSubscription(id, new AppError('internal', 'the engine sent rows of another table'));
        return undefined;
      }
      queue.push(batch);
      this.#pump(subscription);
      // An engine that heeds this keeps the rest of a long history to itself until there is room for it.
      return queue.waiting && this.#subscriptions.has(id) ? whenEmptied(subscription) : undefined;
    });
    this.#attach(subscription, dispose);
  }

  #add(id: number, queue: OutgoingQueue): Subscription {
    const subscription: Subscription = {
      id,
      queue,
      sent: 0,
      acknowledged: 0,
      dispose: undefined,
      emptied: undefined,
    };
    this.#subscriptions.set(id, subscription);
    return subscription;
  }

  /** The engine may have called the listener, and that have ended the subscription, before it gave the disposer. */
  #attach(subscription: Subscription, dispose: Dispose): void {
    if (this.#subscriptions.has(subscription.id)) subscription.dispose = dispose;
    else dispose();
  }

  #remove(subscription: Subscription): void {
    this.#subscriptions.delete(subscription.id);
    subscription.dispose?.();
    subscription.emptied?.resolve();
    subscription.emptied = undefined;
  }

  #endSubscription(id: number, error: AppError): void {
    const subscription = this.#subscriptions.get(id);
    if (subscription !== undefined) this.#remove(subscription);
    this.#logFault(error);
    this.#post({ type: 'ended', id, error: errorToMessage(error) });
  }

  #handleAck(id: number, received: number): void {
    const subscription = this.#subscriptions.get(id);
    // One that ended while the acknowledgement was on its way.
    if (subscription === undefined) return;
    if (received > subscription.sent || received < subscription.acknowledged) {
      this.#refuse(new AppError('usage', `subscription ${id} acknowledged what was not sent`));
      return;
    }
    subscription.acknowledged = received;
    this.#pump(subscription);
  }

  /** Sends what waits, as far as the client's credit and the port's backlog allow. */
  #pump(subscription: Subscription): void {
    const { queue } = subscription;
    try {
      while (queue.waiting && subscription.sent - subscription.acknowledged < this.#limits.creditMessages) {
        if (this.#port.bufferedBytes > this.#limits.highWaterBytes) {
          this.#retryLater();
          return;
        }
        const message = queue.take();
        subscription.sent++;
        this.#port.post(message);
      }
    } catch (thrown) {
      this.#endSubscription(subscription.id, asAppError(thrown));
      return;
    }
    if (queue.waiting) return;
    subscription.emptied?.resolve();
    subscription.emptied = undefined;
  }

  /** An acknowledgement would bring a subscription on, but there may be none to come: what fills the port may be others'. */
  #retryLater(): void {
    this.#cancelRetry ??= this.#schedule(this.#limits.retryUs, () => {
      this.#cancelRetry = undefined;
      for (const subscription of this.#subscriptions.values()) this.#pump(subscription);
    });
  }

  #logFault(error: AppError): void {
    if (error.kind !== 'internal') return;
    const cause = error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : undefined;
    this.#log.log('error', error.message, cause === undefined ? {} : { cause });
  }
}

function whenEmptied(subscription: Subscription): Promise<void> {
  subscription.emptied ??= deferred();
  return subscription.emptied.promise;
}

function deferred(): Deferred {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
