/** What a function does with the data that comes to one of its OUT endpoints. */
export interface OutSink {
  /**
   * How many of the next `wantedBytes` of a transfer are taken now: all, or whole packets of `packetBytes`; 0 is a NAK,
   * after which the endpoint reports when it is ready again.
   */
  admit(wantedBytes: number, packetBytes: number): number;
  /**
   * Bytes have arrived that were admitted before. `endOfMessage`: the last packet was a short one (or empty), which ends
   * the message.
   */
  receive(bytes: Uint8Array, offset: number, length: number, endOfMessage: boolean, nowUs: number): void;
}

/** Where the data of an IN endpoint comes from. */
export interface InSource {
  /** Bytes left to send of the current message; 0: only the empty packet that ends it; -1: nothing to send (NAK). */
  pendingBytes(): number;
  /** Sends the next `length` bytes of the message (0: the empty packet). A packet shorter than full ends the message. */
  transmit(to: Uint8Array, offset: number, length: number, nowUs: number): void;
}

/** Who is told that an endpoint which had answered with NAK can go on. */
export type ReadyListener = (nowUs: number) => void;

/** One endpoint of a simulated device, seen from the device. */
export class DeviceEndpoint {
  /** With the direction bit. */
  readonly address: number;
  readonly sink: OutSink | undefined;
  readonly source: InSource | undefined;
  /** Answers with STALL until the halt is cleared. */
  halted = false;
  /** Answers nothing but NAK before this time. */
  silentUntilUs = 0;
  #listener: ReadyListener | undefined;

  constructor(address: number, ends: { readonly sink?: OutSink; readonly source?: InSource }) {
    this.address = address;
    this.sink = ends.sink;
    this.source = ends.source;
  }

  setListener(listener: ReadyListener): void {
    this.#listener = listener;
  }

  /** There is room again, or something to send. */
  ready(nowUs: number): void {
    this.#listener?.(nowUs);
  }
}
