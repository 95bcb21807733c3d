/**
 * One network packet on its way down (the kernel's `sk_buff`, as far as needed): an Ethernet frame in a buffer of its
 * own, its priority, and the times it was seen at. Packets come from a {@link PacketPool} and go back to it.
 */
export class Packet {
  readonly bytes: Uint8Array;
  /** The frame is `bytes[0 … length)`, without FCS. */
  length = 0;
  /** The kernel's `skb->priority` (TC_PRIO_*). */
  priority = 0;
  /** What its sender wants to recognise it by when it is reported as sent; 0: nothing. */
  tag = 0;
  /** When it entered the qdisc. */
  enqueuedAtUs = 0;
  /** The packet behind it, for whoever holds both in a queue. */
  next: Packet | undefined = undefined;
  #pool: PacketPool | undefined;
  #frame: Uint8Array;

  constructor(capacity: number, pool?: PacketPool) {
    this.bytes = new Uint8Array(capacity);
    this.#frame = this.bytes;
    this.#pool = pool;
  }

  /** The frame alone: a view of {@link bytes}, made anew only where the length is another one than the last time. */
  get frame(): Uint8Array {
    if (this.#frame.length !== this.length) this.#frame = this.bytes.subarray(0, this.length);
    return this.#frame;
  }

  /** Gives the packet back to where it came from. Whoever holds it calls this exactly once. */
  release(): void {
    this.#pool?.give(this);
  }
}

/** The bytes a packet can hold: a frame of the usual MTU with a VLAN tag, and room for the largest that modems use. */
export const packetCapacityBytes = 2048;

/**
 * A stock of packets. It grows as needed up to `limit`; then `take` answers undefined and counts a failure, and the
 * sender has to wait, as it would for socket buffer space.
 */
export class PacketPool {
  readonly limit: number;
  readonly #free: Packet[] = [];
  #made = 0;
  #failures = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Packets handed out and not yet given back. */
  get inUse(): number {
    return this.#made - this.#free.length;
  }
  get failures(): number {
    return this.#failures;
  }

  take(): Packet | undefined {
    let packet = this.#free.pop();
    if (packet === undefined) {
      if (this.#made === this.limit) {
        this.#failures++;
        return undefined;
      }
      this.#made++;
      packet = new Packet(packetCapacityBytes, this);
    }
    packet.length = 0;
    packet.priority = 0;
    packet.tag = 0;
    packet.enqueuedAtUs = 0;
    return packet;
  }

  give(packet: Packet): void {
    this.#free.push(packet);
  }
}
