import { type Dispose, Emitter } from '../base/emitter.ts';
import { AppError, asAppError } from '../base/errors.ts';
import type { EngineApi } from '../contract/engine-api.ts';
import { type MethodName, type MethodParams, type MethodResult, methods } from '../contract/methods.ts';
import type { TelemetryBatch } from '../contract/telemetry.ts';
import {
  type TelemetryParams,
  telemetryParamsSchema,
  type TopicName,
  type TopicParams,
  topics,
  type TopicValue,
} from '../contract/topics.ts';
import { contractVersion } from '../contract/version.ts';
import { badParams, badResult, versionMismatch } from './contract-errors.ts';
import {
  type ClientMessage,
  errorFromMessage,
  firstIssue,
  maxReplyChars,
  parseMessage,
  type ServerMessage,
  serverMessageSchema,
  telemetryTopic,
} from './messages.ts';
import type { Port } from './port.ts';
import type { Schedule } from './schedule.ts';
import { decodeTelemetryFrame } from './telemetry-frame.ts';

export interface ClientOptions {
  readonly schedule: Schedule;
  /** How long a call, and the greeting, may take. */
  readonly callDeadlineUs?: number;
  /** Deadlines of single methods, where the common one does not fit. */
  readonly deadlinesUs?: Partial<Readonly<Record<MethodName, number>>>;
  readonly maxReplyChars?: number;
}

/** Most calls are answered in milliseconds; opening a device and giving it back take their own deadlines. */
const defaultCallDeadlineUs = 30_000_000;
/** A report reads a whole recording. */
const defaultDeadlinesUs: Partial<Readonly<Record<MethodName, number>>> = {
  'report.create': 180_000_000,
};

interface Call {
  readonly method: MethodName;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: AppError) => void;
  readonly cancelDeadline: Dispose;
}

interface Subscription {
  readonly id: number;
  readonly topic: string;
  /** Messages dealt with since the start. */
  received: number;
  readonly handleEvent: (values: readonly unknown[]) => void;
  readonly handleTelemetry: (batch: TelemetryBatch) => void;
}

const nothing = (): void => {};

/**
 * The engine at the other end of a port. It greets at once; calls can be made without waiting for the answer.
 * When the port closes it is over: every open call fails with `engine-gone`, and {@link onClose} says why. To connect
 * again is the host's affair: a new port, a new client.
 */
export class EngineClient implements EngineApi {
  /** Settles when the engine has greeted back; rejects with what {@link onClose} tells if it never does. */
  readonly ready: Promise<void>;
  readonly #closedEmitter = new Emitter<AppError>();
  readonly #problems = new Emitter<AppError>();
  /** Told once, with the reason. */
  readonly onClose = this.#closedEmitter.event;
  /** A subscription that the engine refused or ended, or a listener that threw. */
  readonly onProblem = this.#problems.event;

  readonly #port: Port;
  readonly #schedule: Schedule;
  readonly #callDeadlineUs: number;
  readonly #deadlinesUs: Partial<Readonly<Record<MethodName, number>>>;
  readonly #maxReplyChars: number;
  readonly #calls = new Map<number, Call>();
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #stopListening: Dispose[] = [];
  #nextId = 1;
  #greeted = false;
  #closedBy: AppError | undefined;
  #resolveReady: () => void = nothing;
  #rejectReady: (error: AppError) => void = nothing;
  readonly #cancelGreetingDeadline: Dispose;

  constructor(port: Port, options: ClientOptions) {
    this.#port = port;
    this.#schedule = options.schedule;
    this.#callDeadlineUs = options.callDeadlineUs ?? defaultCallDeadlineUs;
    this.#deadlinesUs = options.deadlinesUs ?? defaultDeadlinesUs;
    this.#maxReplyChars = options.maxReplyChars ?? maxReplyChars;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    // Who waits for it hears of a rejection; nobody has to.
    this.ready.catch(nothing);
    this.#stopListening.push(
      port.onMessage((message) => this.#handleMessage(message)),
      port.onClose(() => this.#end(new AppError('engine-gone', 'the connection to the engine was closed'))),
    );
    this.#cancelGreetingDeadline = this.#schedule(this.#callDeadlineUs, () => {
      this.#fail(new AppError('engine-gone', 'the engine did not greet in time'));
    });
    this.#post({ type: 'hello', contractVersion });
  }

  /** Why the client is closed; undefined while it is not. */
  get closedBy(): AppError | undefined {
    return this.#closedBy;
  }

  close(): void {
    this.#fail(new AppError('engine-gone', 'the connection to the engine was closed here'));
  }

  call<M extends MethodName>(method: M, params: MethodParams<M>): Promise<MethodResult<M>> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy);
    const parsed = methods[method].params.safeParse(params);
    if (!parsed.success) return Promise.reject(badParams(method, firstIssue(parsed.error)));
    const id = this.#nextId++;
    return new Promise<MethodResult<M>>((resolve, reject) => {
      const deadlineUs = this.#deadlinesUs[method] ?? this.#callDeadlineUs;
      const cancelDeadline = this.#schedule(deadlineUs, () => {
        this.#calls.delete(id);
        reject(
          new AppError('timed-out', `the engine did not answer ${method} in ${deadlineUs / 1_000_000} s`, {
            details: { method, deadlineUs },
          }),
        );
      });
      this.#calls.set(id, {
        method,
        resolve: (result) => resolve(result as MethodResult<M>),
        reject,
        cancelDeadline,
      });
      this.#post({ type: 'call', id, method, params: parsed.data });
    });
  }

  /**
   * A subscription on a closed client is over before it begins: {@link onClose} has said so.
   * @throws AppError `bad-input` if the parameters are not the topic's
   */
  subscribe<T extends TopicName>(
    topic: T,
    params: TopicParams<T>,
    listener: (value: TopicValue<T>) => void,
  ): Dispose {
    const parsed = topics[topic].params.safeParse(params);
    if (!parsed.success) throw badParams(topic, firstIssue(parsed.error));
    const schema = topics[topic].value;
    return this.#subscribe(topic, parsed.data, (subscription) => ({
      handleEvent: (values) => {
        for (const value of values) {
          if (!this.#subscriptions.has(subscription.id)) return;
          const checked = schema.safeParse(value);
          if (!checked.success) {
            this.#fail(
              new AppError('internal', `a value of ${topic} is none (${firstIssue(checked.error)})`),
            );
            return;
          }
          this.#deliver(() => listener(checked.data as TopicValue<T>));
        }
        this.#acknowledge(subscription);
      },
      handleTelemetry: () => this.#fail(new AppError('internal', `${topic} is not telemetry`)),
    }));
  }

  /** As {@link subscribe}. */
  subscribeTelemetry(
    params: TelemetryParams,
    listener: (batch: TelemetryBatch) => void | Promise<void>,
  ): Dispose {
    const parsed = telemetryParamsSchema.safeParse(params);
    if (!parsed.success) throw badParams(telemetryTopic, firstIssue(parsed.error));
    return this.#subscribe(telemetryTopic, parsed.data, (subscription) => {
      // What the server's credit lets through while the listener is busy with an earlier batch.
      const waiting: TelemetryBatch[] = [];
      let busy = false;
      const deliverNext = (): void => {
        while (!busy && this.#subscriptions.has(subscription.id)) {
          const batch = waiting.shift();
          if (batch === undefined) return;
          const dealtWith = this.#deliver(() => listener(batch));
          if (dealtWith === undefined) {
            this.#acknowledge(subscription);
            continue;
          }
          busy = true;
          void dealtWith
            .catch((thrown: unknown) => this.#problems.emit(asAppError(thrown)))
            .then(() => {
              busy = false;
              this.#acknowledge(subscription);
              deliverNext();
            });
        }
      };
      return {
        handleEvent: () => this.#fail(new AppError('internal', 'telemetry does not come as text')),
        handleTelemetry: (batch) => {
          waiting.push(batch);
          deliverNext();
        },
      };
    });
  }

  #subscribe(
    topic: string,
    params: unknown,
    handlers: (subscription: {
      readonly id: number;
    }) => Pick<Subscription, 'handleEvent' | 'handleTelemetry'>,
  ): Dispose {
    if (this.#closedBy !== undefined) return nothing;
    const id = this.#nextId++;
    this.#subscriptions.set(id, { id, topic, received: 0, ...handlers({ id }) });
    this.#post({ type: 'subscribe', id, topic, params });
    return () => {
      if (this.#subscriptions.delete(id)) this.#post({ type: 'unsubscribe', id });
    };
  }

  /** Calls a listener; one that throws is a problem of its own, not of the connection. */
  #deliver<T>(listener: () => T): T | undefined {
    try {
      return listener();
    } catch (thrown) {
      this.#problems.emit(asAppError(thrown));
      return undefined;
    }
  }

  #acknowledge({ id }: { readonly id: number }): void {
    const subscription = this.#subscriptions.get(id);
    if (subscription === undefined) return;
    subscription.received++;
    this.#post({ type: 'ack', id, received: subscription.received });
  }

  #post(message: ClientMessage): void {
    if (this.#closedBy === undefined) this.#port.post(JSON.stringify(message));
  }

  #handleMessage(message: string | ArrayBuffer): void {
    if (this.#closedBy !== undefined) return;
    if (typeof message !== 'string') {
      this.#handleFrame(message);
      return;
    }
    const parsed = parseMessage(serverMessageSchema, message, this.#maxReplyChars);
    if (parsed.ok) this.#handle(parsed.value);
    else this.#fail(new AppError('internal', `the engine sent what is no message: ${parsed.reason}`));
  }

  #handle(message: ServerMessage): void {
    if (message.type === 'refused') {
      this.#fail(errorFromMessage(message.error));
      return;
    }
    if (this.#greeted === (message.type === 'hello')) {
      this.#fail(new AppError('internal', 'the engine greets first, and once'));
      return;
    }
    switch (message.type) {
      case 'hello':
        if (message.contractVersion !== contractVersion) {
          this.#fail(versionMismatch(contractVersion, message.contractVersion));
          break;
        }
        this.#greeted = true;
        this.#cancelGreetingDeadline();
        this.#resolveReady();
        break;
      case 'result':
        this.#settle(message.id, (call) => {
          const parsed = methods[call.method].result.safeParse(message.result);
          if (parsed.success) call.resolve(parsed.data);
          else call.reject(badResult(call.method, firstIssue(parsed.error)));
        });
        break;
      case 'error':
        this.#settle(message.id, (call) => call.reject(errorFromMessage(message.error)));
        break;
      case 'event':
        this.#find(message.id)?.handleEvent(message.values);
        break;
      case 'ended':
        if (this.#find(message.id) === undefined) break;
        this.#subscriptions.delete(message.id);
        this.#problems.emit(errorFromMessage(message.error));
        break;
    }
  }

  #handleFrame(buffer: ArrayBuffer): void {
    const frame = decodeTelemetryFrame(buffer);
    if (frame === undefined || !this.#greeted) {
      this.#fail(new AppError('internal', 'the engine sent a binary message that is no telemetry'));
      return;
    }
    this.#find(frame.subscriptionId)?.handleTelemetry(frame.batch);
  }

  /** Nothing for one that has been given up: what was on its way is let go. */
  #find(id: number): Subscription | undefined {
    if (id >= this.#nextId) {
      this.#fail(new AppError('internal', `the engine knows a subscription ${id} that was never made`));
    }
    return this.#subscriptions.get(id);
  }

  /** An answer that comes after its call's deadline is let go. */
  #settle(id: number, settle: (call: Call) => void): void {
    const call = this.#calls.get(id);
    if (call === undefined) {
      if (id >= this.#nextId) {
        this.#fail(new AppError('internal', `the engine answered a call ${id} that was never made`));
      }
      return;
    }
    this.#calls.delete(id);
    call.cancelDeadline();
    settle(call);
  }

  #fail(reason: AppError): void {
    this.#end(reason);
    this.#port.close();
  }

  #end(reason: AppError): void {
    if (this.#closedBy !== undefined) return;
    this.#closedBy = reason;
    this.#cancelGreetingDeadline();
    for (const stop of this.#stopListening) stop();
    this.#subscriptions.clear();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) {
      call.cancelDeadline();
      call.reject(
        new AppError(
          'engine-gone',
          `the engine was gone before it answered ${call.method}: ${reason.message}`,
          {
            details: { method: call.method },
            cause: reason,
            ...(reason.remedy === undefined ? {} : { remedy: reason.remedy }),
          },
        ),
      );
    }
    this.#rejectReady(reason);
    this.#closedEmitter.emit(reason);
  }
}
