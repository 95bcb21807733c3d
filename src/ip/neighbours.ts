import { neverUs } from '../base/clock.ts';

/** A request is repeated after a second, and given up after three (RFC 1122's rate, Linux's count). */
const retryUs = 1_000_000;
const requestLimit = 3;
/** A given-up address is asked for again after this long. */
const failedUs = 3_000_000;
/** An answer is trusted this long; traffic renews it. */
const reachableUs = 30_000_000;
/** More than a probing host ever talks to. */
const capacity = 64;

interface Neighbour {
  readonly macAddress: Uint8Array;
  state: 'incomplete' | 'reachable' | 'failed';
  /** It did not answer the last time it was asked. */
  silent: boolean;
  requests: number;
  /** Incomplete: next request. Reachable: to be confirmed. Failed: to be tried again. */
  dueAtUs: number;
}

/** IPv4 addresses on the link and their MAC addresses, as ARP finds them. */
export class Neighbours {
  readonly #entries = new Map<number, Neighbour>();
  readonly #sendRequest: (address: number, nowUs: number) => void;

  /** @param sendRequest broadcasts an ARP request for an address */
  constructor(sendRequest: (address: number, nowUs: number) => void) {
    this.#sendRequest = sendRequest;
  }

  /** The MAC address, if it is known; else it is asked for, and the caller has to try again later. */
  lookup(address: number, nowUs: number): Uint8Array | undefined {
    const entry = this.#entries.get(address);
    if (entry === undefined) {
      this.#begin(address, nowUs);
      return undefined;
    }
    if (entry.state === 'reachable') {
      // Confirmed by asking again, while the old answer stays in use.
      if (nowUs >= entry.dueAtUs) {
        entry.dueAtUs = nowUs + retryUs;
        this.#sendRequest(address, nowUs);
      }
      return entry.macAddress;
    }
    if (entry.state === 'failed' && nowUs >= entry.dueAtUs) this.#ask(entry, address, nowUs);
    return undefined;
  }

  /** True if the address did not answer three requests, until it answers one. */
  hasFailed(address: number): boolean {
    return this.#entries.get(address)?.silent === true;
  }

  #begin(address: number, nowUs: number): void {
    if (this.#entries.size >= capacity) this.#evict();
    const entry: Neighbour = {
      macAddress: new Uint8Array(6),
      state: 'incomplete',
      silent: false,
      requests: 0,
      dueAtUs: neverUs,
    };
    this.#entries.set(address, entry);
    this.#ask(entry, address, nowUs);
  }

  /** Makes room: the oldest that is not known to be there goes, so that no flood of them drives out the gateway. */
  #evict(): void {
    let [victim] = this.#entries.keys();
    for (const [address, { state }] of this.#entries) {
      if (state === 'reachable') continue;
      victim = address;
      break;
    }
    if (victim !== undefined) this.#entries.delete(victim);
  }

  #ask(entry: Neighbour, address: number, nowUs: number): void {
    if (entry.state === 'failed') entry.requests = 0;
    entry.state = 'incomplete';
    entry.requests++;
    entry.dueAtUs = nowUs + retryUs;
    this.#sendRequest(address, nowUs);
  }

  /** Takes over what an ARP message says of its sender, if that address is one we asked for. */
  learn(address: number, macAddress: Uint8Array, nowUs: number): void {
    const entry = this.#entries.get(address);
    if (entry === undefined) return;
    entry.macAddress.set(macAddress);
    entry.state = 'reachable';
    entry.silent = false;
    entry.requests = 0;
    entry.dueAtUs = nowUs + reachableUs;
  }

  clear(): void {
    this.#entries.clear();
  }

  poll(nowUs: number): void {
    for (const [address, entry] of this.#entries) {
      if (entry.state !== 'incomplete' || nowUs < entry.dueAtUs) continue;
      if (entry.requests < requestLimit) {
        this.#ask(entry, address, nowUs);
      } else {
        entry.state = 'failed';
        entry.silent = true;
        entry.dueAtUs = nowUs + failedUs;
      }
    }
  }

  pollAtUs(): number {
    let next = neverUs;
    for (const entry of this.#entries.values()) {
      if (entry.state === 'incomplete' && entry.dueAtUs < next) next = entry.dueAtUs;
    }
    return next;
  }
}
