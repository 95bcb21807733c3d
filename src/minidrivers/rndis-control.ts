import { cdcRequests } from '../wire/cdc-class.ts';
import {
  encodeRndisMessage,
  maxRndisControlBytes,
  parseRndisMessage,
  readRndisHeader,
  rndisHeaderLength,
  type RndisKind,
  type RndisMessage,
  rndisStatuses,
} from '../wire/rndis.ts';
import {
  controlIn,
  controlOut,
  describeStatus,
  DriverError,
  type Procedure,
  sleep,
} from '../usbnet/procedure.ts';

/** How often an answer is asked for, and how long apart (spec 3.4). */
const pollsPerCommand = 10;
const pollUs = 40_000;
/** What is asked for at once: one byte more than the longest message. */
const responseBytes = maxRndisControlBytes + 1;
/** A command whose answer got lost is given once more; after that the device is taken to be deaf. */
const attempts = 2;
/** Pieces that a message may come in. */
const maxPieces = 64;
/** Each control transfer may take five seconds: a device that lets two of them pass is not asked any more. */
const timeoutsAllowed = 2;
/** Messages that are fetched in one go when nobody waits for an answer. */
const maxUnasked = 8;

/** What went wrong in the conversation and was got over, by reason. */
export interface RndisFaults {
  /** Answers with another request's id, or to another kind of request. */
  strayAnswers: number;
  /** Requests for an answer that brought nothing, or were refused. */
  emptyAnswers: number;
  /** Pieces of messages that were put together. */
  fragments: number;
  /** Bytes that were no message. */
  malformed: number;
  /** Answers that were shorter than they said. */
  shortAnswers: number;
  /** Commands that were given a second time. */
  repeats: number;
}

/** The answers that a command can have. */
type Completion = Extract<RndisMessage, { requestId: number; status: number }>;
type CompletionOf<Kind extends RndisKind> = Extract<Completion, { kind: Kind }>;

const completions = {
  initialize: 'initialize-complete',
  query: 'query-complete',
  set: 'set-complete',
  'keep-alive': 'keep-alive-complete',
} as const;
type CommandKind = keyof typeof completions;
/** A command without its id, which is given to it when it is sent. */
type Command = {
  [Kind in CommandKind]: Omit<Extract<RndisMessage, { kind: Kind }>, 'requestId'>;
}[CommandKind];

/**
 * RNDIS' conversation over the control endpoint (spec 3.4): commands go out as encapsulated commands, and what the device
 * has to say is fetched as encapsulated responses, answers and everything else mixed. Devices do this in all kinds of
 * ways: they forget to announce an answer (so it is asked for without being told), answer late, an earlier command, in
 * pieces, with less than they should, or with nothing at all. All of it is counted and got over.
 */
export class RndisControl {
  readonly #controlInterface: number;
  readonly #handleIndication: (status: number) => void;
  readonly faults: RndisFaults = {
    strayAnswers: 0,
    emptyAnswers: 0,
    fragments: 0,
    malformed: 0,
    shortAnswers: 0,
    repeats: 0,
  };
  /** Keep-alives of the device that were answered. */
  keepAlivesAnswered = 0;
  #requestId = 0;
  /** The beginning of a message whose rest is to come. */
  #partial: Uint8Array | undefined;

  /** @param handleIndication is given the status of each INDICATE message */
  constructor(controlInterface: number, handleIndication: (status: number) => void) {
    this.#controlInterface = controlInterface;
    this.#handleIndication = handleIndication;
  }

  /**
   * Gives a command and waits for its answer.
   * @param stage what it is for, in words
   * @throws DriverError if there is none, or if it is a refusal
   */
  *command<Given extends Command>(
    stage: string,
    command: Given,
  ): Procedure<CompletionOf<(typeof completions)[Given['kind']]>> {
    let timeouts = 0;
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) this.faults.repeats++;
      const requestId = this.#nextRequestId();
      const sent = yield* this.#send({ ...command, requestId } as RndisMessage);
      if (sent !== 'completed') throw new DriverError(stage, describeStatus(sent), sent);
      let pieces = 0;
      for (let poll = 0; poll < pollsPerCommand; poll++) {
        const answer = yield* this.#read();
        if (answer.status === 'gone') throw new DriverError(stage, describeStatus('gone'), 'gone');
        if (answer.status === 'timed-out' && ++timeouts === timeoutsAllowed) {
          throw new DriverError(stage, describeStatus('timed-out'), 'timed-out');
        }
        for (const message of answer.messages) {
          if (message.kind === completions[command.kind] && message.requestId === requestId) {
            if (message.status === rndisStatuses.success) {
              return message as CompletionOf<(typeof completions)[Given['kind']]>;
            }
            throw new DriverError(stage, `the device answered with status ${message.status.toString(16)}`);
          }
          yield* this.#handleUnasked(message);
        }
        if (this.#partial === undefined) yield* sleep(pollUs);
        // The rest of a message is there already, and is asked for at once, but not without end.
        else if (++pieces <= maxPieces) poll--;
      }
    }
    throw new DriverError(stage, 'the device did not answer the command', 'timed-out');
  }

  /** Reads one object. @throws DriverError also if the answer points out of itself or is shorter than `leastBytes` */
  *query(stage: string, oid: number, roomBytes: number, leastBytes: number): Procedure<Uint8Array> {
    // Some devices want the question to be as long as the answer (spec 3.4).
    const information = new Uint8Array(roomBytes);
    const answer = yield* this.command(stage, { kind: 'query', oid, information });
    if (answer.information === undefined || answer.information.length < leastBytes) {
      throw new DriverError(stage, 'the answer does not hold what was asked for');
    }
    return answer.information;
  }

  /** A command without an answer. Its status is of no interest: the device is being left. */
  *halt(): Procedure<void> {
    yield* this.#send({ kind: 'halt', requestId: 0 });
    this.#partial = undefined;
  }

  /** Fetches what the device has to say unasked. */
  *fetchUnasked(): Procedure<void> {
    for (let i = 0; i < maxUnasked; i++) {
      const { messages } = yield* this.#read();
      if (messages.length === 0 && this.#partial === undefined) return;
      for (const message of messages) yield* this.#handleUnasked(message);
    }
  }

  #nextRequestId(): number {
    this.#requestId = (this.#requestId + 1) >>> 0;
    if (this.#requestId === 0) this.#requestId = 1;
    return this.#requestId;
  }

  #send(message: RndisMessage): ReturnType<typeof controlOut> {
    return controlOut(
      'class-interface',
      cdcRequests.sendEncapsulatedCommand,
      0,
      this.#controlInterface,
      encodeRndisMessage(message),
    );
  }

  *#read(): Procedure<{
    readonly status: Parameters<typeof describeStatus>[0];
    readonly messages: readonly RndisMessage[];
  }> {
    const { status, data } = yield* controlIn(
      'class-interface',
      cdcRequests.getEncapsulatedResponse,
      0,
      this.#controlInterface,
      responseBytes,
    );
    return { status, messages: this.#takeMessages(status === 'completed' ? data : data.subarray(0, 0)) };
  }

  /** Puts what came behind what was left over, and takes the whole messages off. */
  #takeMessages(data: Uint8Array): readonly RndisMessage[] {
    const pending = this.#partial;
    this.#partial = undefined;
    // A single 0 is what some devices have to say when they have nothing to say.
    if (data.length === 0 || (data.length === 1 && data[0] === 0)) {
      this.faults.emptyAnswers++;
      return pending === undefined ? [] : this.#takeShort(pending);
    }
    let bytes = data;
    if (pending !== undefined) {
      if (readRndisHeader(data)?.length === data.length) {
        // A whole message: the rest of the one before never came.
        this.faults.malformed++;
      } else {
        this.faults.fragments++;
        bytes = new Uint8Array(pending.length + data.length);
        bytes.set(pending);
        bytes.set(data, pending.length);
      }
    }
    const messages: RndisMessage[] = [];
    while (bytes.length > 0) {
      const header = readRndisHeader(bytes);
      if (header === undefined && bytes.length < rndisHeaderLength && bytes[0] !== 0) {
        // A piece that is shorter than a header.
        this.#partial = bytes.slice();
        break;
      }
      if (header === undefined) {
        if (bytes.some((byte) => byte !== 0)) this.faults.malformed++;
        break;
      }
      if (header.length > bytes.length) {
        this.#partial = bytes.slice(0, maxRndisControlBytes);
        break;
      }
      const message = parseRndisMessage(bytes.subarray(0, header.length));
      if (message === undefined) this.faults.malformed++;
      else messages.push(message);
      bytes = bytes.subarray(header.length);
    }
    return messages;
  }

  /** Nothing more comes: a message that says it is longer than it is. */
  #takeShort(bytes: Uint8Array): readonly RndisMessage[] {
    const message = parseRndisMessage(bytes);
    if (message === undefined) {
      this.faults.malformed++;
      return [];
    }
    this.faults.shortAnswers++;
    return [message];
  }

  *#handleUnasked(message: RndisMessage): Procedure<void> {
    switch (message.kind) {
      case 'indicate':
        this.#handleIndication(message.status);
        break;
      case 'keep-alive':
        this.keepAlivesAnswered++;
        yield* this.#send({
          kind: 'keep-alive-complete',
          requestId: message.requestId,
          status: rndisStatuses.success,
        });
        break;
      default:
        this.faults.strayAnswers++;
        break;
    }
  }
}
