import { cdcRequests } from '../wire/cdc-class.ts';
import { controlIn, controlOut, type Procedure, sleep } from '../usbnet/procedure.ts';

/** The longest message either way, bytes (`wMaxCommand`, spec 3.7). */
const maxMessageBytes = 1024;
/** How often the end of an answer is asked for, and how long apart. */
const pollsPerCommand = 20;
const pollUs = 50_000;
/** Messages that are fetched in one go when nobody waits for an answer. */
const maxUnasked = 8;

const endOfAnswer = /^(?:OK|ERROR|NO CARRIER|COMMAND NOT SUPPORT|\+CM[ES] ERROR:.*)$/;

export interface AtAnswer {
  readonly ok: boolean;
  /** Without the line that ends it. */
  readonly lines: readonly string[];
}

/**
 * AT commands over the control endpoint, as encapsulated commands and responses: the channel that Huawei's NCM sticks
 * have beside their data (spec 3.7). To Linux it is a character device of cdc-wdm.
 */
export class EmbeddedAt {
  readonly #controlInterface: number;
  readonly #decoder = new AsciiText();

  constructor(controlInterface: number) {
    this.#controlInterface = controlInterface;
  }

  /** Gives a command ("AT^NDISDUP=1,1"). Undefined: the device has no such channel, or does not answer. */
  *command(text: string): Procedure<AtAnswer | undefined> {
    const status = yield* controlOut(
      'class-interface',
      cdcRequests.sendEncapsulatedCommand,
      0,
      this.#controlInterface,
      bytesOf(`${text}\r`),
    );
    if (status !== 'completed') return undefined;
    const lines: string[] = [];
    for (let poll = 0; poll < pollsPerCommand; poll++) {
      const received = yield* this.#read();
      if (received === undefined) return undefined;
      for (const line of received) {
        if (endOfAnswer.test(line)) return { ok: line === 'OK', lines };
        // Its echo is no part of the answer.
        if (line !== text) lines.push(line);
      }
      if (received.length === 0) yield* sleep(pollUs);
    }
    return undefined;
  }

  /** Fetches what the device says unasked, so that it can go on. */
  *fetchUnasked(): Procedure<readonly string[]> {
    const lines: string[] = [];
    for (let i = 0; i < maxUnasked; i++) {
      const received = yield* this.#read();
      if (received === undefined || received.length === 0) break;
      lines.push(...received);
    }
    return lines;
  }

  /** Whole lines that have come; undefined: the device is gone, or deaf. */
  *#read(): Procedure<readonly string[] | undefined> {
    const { status, data } = yield* controlIn(
      'class-interface',
      cdcRequests.getEncapsulatedResponse,
      0,
      this.#controlInterface,
      maxMessageBytes,
    );
    if (status === 'gone' || status === 'timed-out') return undefined;
    return status === 'completed' ? this.#decoder.add(data) : [];
  }
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Splits what comes into lines, however it is cut. */
class AsciiText {
  #rest = '';

  add(bytes: Uint8Array): readonly string[] {
    const parts = (this.#rest + String.fromCharCode(...bytes)).split(/[\r\n]+/);
    const rest = parts.pop() ?? '';
    this.#rest = rest.length > maxMessageBytes ? '' : rest;
    return parts.filter((line) => line !== '');
  }
}
