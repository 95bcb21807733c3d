import { encodeNotification } from '../../wire/cdc-notification.ts';
import type { InSource } from '../device-endpoint.ts';

export interface NotifierLink {
  /** What the function says of its link, bits per second. */
  readonly downBitsPerSecond: number;
  readonly upBitsPerSecond: number;
}

const plainLength = 8;
const speedChangeLength = 16;
const maxUint32 = 0xffff_ffff;

/**
 * The interrupt endpoint of a CDC network function: says how fast the link is, then that it is there; or that it is
 * not. What has not been fetched when the state changes again is replaced, not queued.
 */
export class CdcNotifier implements InSource {
  readonly #interfaceNumber: number;
  readonly #link: NotifierLink;
  #connected = false;
  #speedDue = false;
  #connectionDue = false;
  #responsesDue = 0;
  #sent = 0;

  constructor(interfaceNumber: number, link: NotifierLink) {
    this.#interfaceNumber = interfaceNumber;
    this.#link = link;
  }

  /** Notifications that the host has fetched. */
  get sent(): number {
    return this.#sent;
  }

  announce(connected: boolean): void {
    this.#connected = connected;
    this.#speedDue = connected;
    this.#connectionDue = true;
  }

  /** There are so many more responses to encapsulated commands. */
  announceResponses(count: number): void {
    this.#responsesDue += count;
  }

  /** Forgets what was to be said of the link. */
  reset(): void {
    this.#speedDue = false;
    this.#connectionDue = false;
  }

  pendingBytes(): number {
    if (this.#speedDue) return speedChangeLength;
    return this.#connectionDue || this.#responsesDue > 0 ? plainLength : -1;
  }

  transmit(to: Uint8Array, offset: number): void {
    this.#sent++;
    if (this.#speedDue) {
      this.#speedDue = false;
      const { downBitsPerSecond, upBitsPerSecond } = this.#link;
      const speeds = {
        downlinkBitsPerSecond: Math.min(downBitsPerSecond, maxUint32),
        uplinkBitsPerSecond: Math.min(upBitsPerSecond, maxUint32),
      };
      to.set(
        encodeNotification({ kind: 'speed-change', interfaceNumber: this.#interfaceNumber, speeds }),
        offset,
      );
      return;
    }
    if (!this.#connectionDue) {
      this.#responsesDue--;
      to.set(
        encodeNotification({ kind: 'response-available', interfaceNumber: this.#interfaceNumber }),
        offset,
      );
      return;
    }
    this.#connectionDue = false;
    const connected = this.#connected;
    to.set(
      encodeNotification({ kind: 'network-connection', interfaceNumber: this.#interfaceNumber, connected }),
      offset,
    );
  }
}
