import { type Clock, neverUs, type Polled } from '../base/clock.ts';
import { Coalescer } from '../netif/coalescer.ts';
import type { Netif } from '../netif/netif.ts';
import { tosPriority } from '../netif/priority.ts';
import { Segmenter } from '../netif/segmenter.ts';
import type { TapDevice } from '../tap/tap-device.ts';
import type { Packet } from '../usbnet/packet.ts';
import { arpLength, checkArp } from '../wire/arp.ts';
import {
  checkEthernet,
  ethernetHeaderLength,
  ethernetType,
  etherTypeArp,
  etherTypeIpv4,
} from '../wire/ethernet.ts';
import { checkIpv4Header, ipv4TypeOfService } from '../wire/ipv4.ts';
import { copyMacAddress, macAddressesEqual, macAddressLength } from '../wire/mac-address.ts';

/** Frames taken from the host in one go; then others get their turn. */
const batch = 64;
/**
 * While the qdisc holds this share of what it has room for, frames are taken at a pace: a program that floods the
 * interface is dropped by the host before it costs us our time. They are still taken, though, and what finds no room is
 * dropped by the qdisc: a packet of priority, which has room of its own, must not wait behind those that have none.
 */
const fullShare = 0.9;
const fullPaceUs = 1000;
const fullReads = 32;
/**
 * What taking frames that find no room may cost of that time: on a slow machine, and of long segments, less than all that
 * these reads bring. More than that would be a flood; less would let a packet of priority wait behind them.
 */
const fullBudgetUs = 100;
/** Without a packet to put a frame into, this long is waited. */
const retryUs = 1000;
const sourceMacOffset = macAddressLength;
const arpSenderMacOffset = ethernetHeaderLength + 8;
const arpTargetMacOffset = ethernetHeaderLength + 18;

/** Has something done at the present time, and then whatever has become due; never from inside of a poll. */
export type RunNow = (action: (nowUs: number) => void) => void;

/** What is needed of a {@link TapDevice}. */
export type TapFrames = Pick<
  TapDevice,
  'header' | 'read' | 'write' | 'whenReadable' | 'macAddress' | 'setCarrier' | 'close'
>;

/** What is needed of a device's interface. */
export type BridgedInterface = Pick<Netif, 'macAddress' | 'packets' | 'transmit'> & {
  readonly qdisc: Pick<Netif['qdisc'], 'length' | 'roomPackets'>;
};

type Intake = 'waiting' | 'ready' | 'closed';
/** What became of an attempt to take a frame from the host. */
type Taken = 'frame' | 'nothing' | 'malformed' | 'gone';

/**
 * Joins a TAP interface with the interface of a device: what the host sends goes through our qdisc, BQL and minidriver like
 * any other packet, and what the device receives goes to the host. Where the host uses another MAC address than the
 * device (it may not be allowed to change its own), addresses are exchanged on the way.
 *
 * A long segment that the host hands over at once is cut into frames here. What there is no packet for, or no more time in
 * this turn, is kept and goes on before anything else is read. The other way, segments of TCP that are received one after
 * another are joined; they wait for others until the device has nothing more in this round, and never longer.
 */
export class TapBridge implements Polled {
  readonly #tap: TapFrames;
  readonly #netif: BridgedInterface;
  readonly #run: RunNow;
  readonly #clock: Clock;
  /** The host's MAC address, if it is another one than the device's. */
  readonly #hostMac: Uint8Array | undefined;
  #intake: Intake = 'waiting';
  /** The host got something: it may have answered at once, which is not worth a wait on another thread. */
  #mayHaveAnswered = false;
  #dueAtUs = 0;
  /** Cuts what the host sends, if it may leave that to us. */
  readonly #segmenter: Segmenter | undefined;
  /** Joins what the host gets, if it takes that. */
  readonly #coalescer: Coalescer | undefined;
  #framesFromHost = 0;
  #readsFromHost = 0;
  #malformedFromHost = 0;
  #framesToHost = 0;
  #writesToHost = 0;
  #refused = 0;

  /** @param clock real time, for what things cost */
  constructor(tap: TapFrames, netif: BridgedInterface, run: RunNow, clock: Clock) {
    this.#tap = tap;
    this.#netif = netif;
    this.#run = run;
    this.#clock = clock;
    const hostMac = tap.macAddress();
    const same = hostMac === undefined || macAddressesEqual(hostMac, 0, netif.macAddress, 0);
    this.#hostMac = same ? undefined : hostMac;
    if (tap.header === 'virtio') {
      this.#segmenter = new Segmenter();
      this.#coalescer = new Coalescer((bytes, length, frames) => this.#write(bytes, length, frames));
    }
    this.#await();
  }

  /** Frames as the device gets them: the pieces of a long segment each count. */
  get framesFromHost(): number {
    return this.#framesFromHost;
  }
  /** So many reads brought something: fewer than frames where the host sends long segments. */
  get readsFromHost(): number {
    return this.#readsFromHost;
  }
  /** What was read and is no frame, or no segment that can be cut into frames. */
  get malformedFromHost(): number {
    return this.#malformedFromHost;
  }
  get framesToHost(): number {
    return this.#framesToHost;
  }
  /** So many writes these took: fewer than frames where segments were joined. */
  get writesToHost(): number {
    return this.#writesToHost;
  }
  /** Received frames that the host did not take. */
  get refused(): number {
    return this.#refused;
  }

  #await(): void {
    this.#intake = 'waiting';
    this.#tap.whenReadable(() => {
      this.#run((nowUs) => {
        if (this.#intake !== 'waiting') return;
        this.#intake = 'ready';
        this.#dueAtUs = nowUs;
      });
    });
  }

  /** How full the qdisc is, for packets of best effort: 1 is full. */
  get #fill(): number {
    const { length, roomPackets } = this.#netif.qdisc;
    return length / roomPackets;
  }

  /**
   * Hands to the host what was joined since the last time, and takes frames from it, as long as there are any: as many as
   * it may have, or a few if the qdisc is full.
   */
  poll(nowUs: number): void {
    this.#coalescer?.flush();
    if (nowUs < this.#dueAtUs) return;
    const looks = this.#looks();
    this.#mayHaveAnswered = false;
    if (!looks) return;
    const isFull = this.#fill >= fullShare;
    const endUs = isFull ? this.#clock.nowUs() + fullBudgetUs : neverUs;
    const lastRead = this.#readsFromHost + fullReads;
    if (isFull) this.#dueAtUs = nowUs + fullPaceUs;
    const mayGoOn = (taken: number): boolean =>
      isFull ? this.#readsFromHost < lastRead && this.#clock.nowUs() < endUs : taken < batch;
    for (let i = 0; mayGoOn(i); i++) {
      const packet = this.#netif.packets.take();
      if (packet === undefined) {
        this.#dueAtUs = nowUs + retryUs;
        return;
      }
      const taken = this.#take(packet);
      if (taken === 'frame') {
        this.#framesFromHost++;
        this.#prepare(packet);
        this.#netif.transmit(packet, nowUs);
        continue;
      }
      packet.release();
      if (taken === 'malformed') continue;
      if (taken === 'gone') this.#intake = 'closed';
      else if (this.#intake === 'ready') this.#await();
      return;
    }
    // There may be more, and somebody waits for it already.
    this.#mayHaveAnswered = true;
  }

  /** Puts the next frame from the host into the packet: the next piece of a segment, or what is read. */
  #take(packet: Packet): Taken {
    const segmenter = this.#segmenter;
    if (segmenter === undefined || segmenter.isEmpty) {
      const length = this.#tap.read(segmenter?.bytes ?? packet.bytes);
      if (length <= 0) return length < 0 ? 'gone' : 'nothing';
      this.#readsFromHost++;
      packet.length = length;
      if (segmenter?.load(length) === false) {
        this.#malformedFromHost++;
        return 'malformed';
      }
    }
    segmenter?.next(packet);
    return 'frame';
  }

  /** Whether there is something to take, or may be. */
  #looks(): boolean {
    switch (this.#intake) {
      case 'ready':
        return true;
      case 'waiting':
        return this.#mayHaveAnswered || this.#segmenter?.isEmpty === false;
      case 'closed':
        return false;
    }
  }

  pollAtUs(): number {
    // At once, whatever the pace of the other direction.
    if (this.#coalescer?.holds === true) return 0;
    return this.#looks() ? this.#dueAtUs : neverUs;
  }

  /** The priority that the sender's TOS byte asks for, and the device's own MAC address as the source. */
  #prepare(packet: Packet): void {
    const { bytes, length } = packet;
    if (checkEthernet(bytes, 0, length) < 0) return;
    const type = ethernetType(bytes, 0);
    if (
      type === etherTypeIpv4 &&
      checkIpv4Header(bytes, ethernetHeaderLength, length - ethernetHeaderLength) > 0
    ) {
      packet.priority = tosPriority(ipv4TypeOfService(bytes, ethernetHeaderLength));
    }
    if (this.#hostMac === undefined) return;
    const { macAddress } = this.#netif;
    copyMacAddress(macAddress, 0, bytes, sourceMacOffset);
    if (type === etherTypeArp && checkArp(bytes, ethernetHeaderLength, arpLength) > 0) {
      copyMacAddress(macAddress, 0, bytes, arpSenderMacOffset);
    }
  }

  /** Hands a received frame to the host. The bytes may be changed. */
  deliver(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#hostMac !== undefined) this.#readdress(bytes, offset, length, this.#hostMac);
    this.#mayHaveAnswered = true;
    if (this.#coalescer === undefined) this.#write(bytes.subarray(offset, offset + length), length, 1);
    else if (!this.#coalescer.add(bytes, offset, length)) this.#refused++;
  }

  #write(bytes: Uint8Array, length: number, frames: number): void {
    this.#writesToHost++;
    if (this.#tap.write(bytes, length)) this.#framesToHost += frames;
    else this.#refused += frames;
  }

  #readdress(bytes: Uint8Array, offset: number, length: number, hostMac: Uint8Array): void {
    const { macAddress } = this.#netif;
    if (checkEthernet(bytes, offset, length) < 0) return;
    if (macAddressesEqual(bytes, offset, macAddress, 0)) copyMacAddress(hostMac, 0, bytes, offset);
    if (ethernetType(bytes, offset) !== etherTypeArp) return;
    if (checkArp(bytes, offset + ethernetHeaderLength, length - ethernetHeaderLength) < 0) return;
    if (macAddressesEqual(bytes, offset + arpTargetMacOffset, macAddress, 0)) {
      copyMacAddress(hostMac, 0, bytes, offset + arpTargetMacOffset);
    }
  }

  close(): void {
    this.#coalescer?.flush();
    this.#intake = 'closed';
    this.#tap.setCarrier(false);
    this.#tap.close();
  }
}
