import { writeUint32Le } from '../../wire/byte-order.ts';
import { encodeRndisMessage, rndisStatuses } from '../../wire/rndis.ts';
import type { StatusSource } from './cdc-network.ts';

/** RESPONSE_AVAILABLE in the form of RNDIS: a one, and a reserved zero. */
const announcementLength = 8;
const responseAvailable = 1;

/**
 * What an RNDIS function has to say on its control endpoint, and the notification that it has. A response that waits is
 * announced until it has been announced once; more that join it are announced too.
 */
export class RndisResponses implements StatusSource {
  readonly #queue: Uint8Array[] = [];
  #due = 0;
  /** It forgets to announce anything. */
  silent = false;

  add(response: Uint8Array): void {
    this.#queue.push(response);
    if (!this.silent) this.#due++;
  }

  /** The next one for GET_ENCAPSULATED_RESPONSE. */
  take(): Uint8Array | undefined {
    return this.#queue.shift();
  }

  /** What could not be handed over in one piece. */
  putBack(rest: Uint8Array): void {
    this.#queue.unshift(rest);
  }

  announce(connected: boolean): void {
    const { mediaConnect, mediaDisconnect } = rndisStatuses;
    this.add(encodeRndisMessage({ kind: 'indicate', status: connected ? mediaConnect : mediaDisconnect }));
  }

  /** What was announced stays announced: the responses are there. */
  reset(): void {
    if (this.#queue.length === 0) this.#due = 0;
  }

  clear(): void {
    this.#queue.length = 0;
    this.#due = 0;
  }

  pendingBytes(): number {
    return this.#due > 0 ? announcementLength : -1;
  }

  transmit(to: Uint8Array, offset: number): void {
    this.#due--;
    to.fill(0, offset, offset + announcementLength);
    writeUint32Le(to, offset, responseAvailable);
  }
}
