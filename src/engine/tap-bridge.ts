import { type Clock, neverUs, type Polled } from '../base/clock.ts';
import type { Netif } from '../netif/netif.ts';
import { tosPriority } from '../netif/priority.ts';
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
const fullBatch = 32;
/** What taking frames that find no room may cost of that time: on a slow machine, less than a batch. */
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
  'read' | 'write' | 'whenReadable' | 'macAddress' | 'setCarrier' | 'close'
>;

/** What is needed of a device's interface. */
export type BridgedInterface = Pick<Netif, 'macAddress' | 'packets' | 'transmit'> & {
  readonly qdisc: Pick<Netif['qdisc'], 'length' | 'roomPackets'>;
};

type Intake = 'waiting' | 'ready' | 'closed';

/**
 * Joins a TAP interface with the interface of a device: what the host sends goes through our qdisc, BQL and minidriver like
 * any other packet, and what the device receives goes to the host. Where the host uses another MAC address than the
 * device (it may not be allowed to change its own), addresses are exchanged on the way.
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
  #framesFromHost = 0;
  #framesToHost = 0;
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
    this.#await();
  }

  get framesFromHost(): number {
    return this.#framesFromHost;
  }
  get framesToHost(): number {
    return this.#framesToHost;
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

  /** Takes frames from the host, as long as there are any: as many as it may have, or a few if the qdisc is full. */
  poll(nowUs: number): void {
    if (nowUs < this.#dueAtUs) return;
    const looks = this.#intake === 'ready' || this.#looksForAnswers();
    this.#mayHaveAnswered = false;
    if (!looks) return;
    const isFull = this.#fill >= fullShare;
    const most = isFull ? fullBatch : batch;
    const endUs = isFull ? this.#clock.nowUs() + fullBudgetUs : neverUs;
    if (isFull) this.#dueAtUs = nowUs + fullPaceUs;
    for (let i = 0; i < most && (!isFull || this.#clock.nowUs() < endUs); i++) {
      const packet = this.#netif.packets.take();
      if (packet === undefined) {
        this.#dueAtUs = nowUs + retryUs;
        return;
      }
      const length = this.#tap.read(packet.bytes);
      if (length <= 0) {
        packet.release();
        if (length < 0) this.#intake = 'closed';
        else if (this.#intake === 'ready') this.#await();
        return;
      }
      packet.length = length;
      this.#framesFromHost++;
      this.#prepare(packet);
      this.#netif.transmit(packet, nowUs);
    }
    // There may be more, and somebody waits for it already.
    this.#mayHaveAnswered = true;
  }

  #looksForAnswers(): boolean {
    return this.#mayHaveAnswered && this.#intake === 'waiting';
  }

  pollAtUs(): number {
    return this.#intake === 'ready' || this.#looksForAnswers() ? this.#dueAtUs : neverUs;
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
    if (this.#tap.write(bytes.subarray(offset, offset + length), length)) this.#framesToHost++;
    else this.#refused++;
    this.#mayHaveAnswered = true;
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
    this.#intake = 'closed';
    this.#tap.setCarrier(false);
    this.#tap.close();
  }
}
