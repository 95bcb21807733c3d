import { readUint16Be, readUint32Be, writeUint16Be } from '../wire/byte-order.ts';
import { complementSum, foldSum, internetChecksumIsGood, onesComplementSum } from '../wire/checksum.ts';
import { ethernetHeaderLength, ethernetType, etherTypeIpv4, etherTypeIpv6 } from '../wire/ethernet.ts';
import {
  checkIpv4,
  ipv4ChecksumOffset,
  ipv4DontFragment,
  ipv4Identification,
  ipv4IsFragment,
  ipv4MinHeaderLength,
  ipv4Protocol,
  ipv4TotalLength,
  ipv4TotalLengthOffset,
} from '../wire/ipv4.ts';
import {
  checkIpv6,
  ipv6HeaderLength,
  ipv6NextHeader,
  ipv6PayloadLength,
  ipv6PayloadLengthOffset,
} from '../wire/ipv6.ts';
import {
  checkTcp,
  ipProtocolTcp,
  tcpAcknowledgment,
  tcpChecksumOffset,
  tcpFlags,
  tcpFlagsOf,
  tcpFlagsOffset,
  tcpHeaderLength,
  tcpMinHeaderLength,
  tcpSequence,
  tcpWindow,
} from '../wire/tcp.ts';
import {
  virtioGso,
  virtioNeedsChecksum,
  virtioNetHeaderLength,
  writeVirtioNetHeader,
} from '../wire/virtio-net-header.ts';
import { WordBuffer } from '../wire/word-buffer.ts';

const longestIpBytes = 65_535;
const network = ethernetHeaderLength;
/** Beside the length of a TCP header: four bits that are zero unless they say something. */
const reservedBits = 0x0f;
const tcpDataOffset = 12;

/**
 * Takes what has been joined: a virtio_net_hdr and a frame of that many bytes together, valid during the call only.
 * @param frames of those that were received
 */
export type CoalescedHandler = (bytes: Uint8Array, length: number, frames: number) => void;

/**
 * Joins received segments of TCP that follow one another into one long segment, as a host's own drivers do (generic receive
 * offload, GRO), and hands it on with what it takes to cut it again.
 *
 * Only what comes out the same when it is cut again: one flow, in order, same headers but for lengths and sequence numbers,
 * same size but for the last, no flags but ACK and PSH, and checksums that are right. Everything else goes on as it is.
 * Nothing overtakes anything.
 */
export class Coalescer {
  readonly #handle: CoalescedHandler;
  readonly #buffer = new WordBuffer(virtioNetHeaderLength + ethernetHeaderLength + longestIpBytes + 1);
  /** The frame alone, behind its header. */
  readonly #frame = this.#buffer.bytes.subarray(virtioNetHeaderLength);
  /** Frames that are held, joined, and the bytes of the frame they make. */
  #frames = 0;
  #length = 0;
  /** Of the first: where its headers begin and end; its payload is what all but the last have. */
  #transport = 0;
  #headersEnd = 0;
  #segmentBytes = 0;
  #nextSequence = 0;
  #nextIdentification = 0;
  /** The first one's checksum was looked at. */
  #isVerified = false;

  constructor(handle: CoalescedHandler) {
    this.#handle = handle;
  }

  /** Whether something waits for more, or for {@link flush}. */
  get holds(): boolean {
    return this.#frames > 0;
  }

  /**
   * Takes a received frame: it is handed on at once, with others, or by {@link flush}.
   * @returns false: it is too long, and is not taken
   */
  add(bytes: Uint8Array, offset: number, length: number): boolean {
    if (length > this.#frame.length) return false;
    const transport = transportOffset(bytes, offset, length);
    if (this.#frames > 0) {
      const follows = transport >= 0 && this.#follows(bytes, offset, transport);
      if (follows && this.#append(bytes, offset, length)) return true;
      this.flush();
    }
    this.#frame.set(bytes.subarray(offset, offset + length));
    this.#length = length;
    this.#frames = 1;
    if (transport >= 0) this.#begin(transport);
    else this.flush();
    return true;
  }

  /** Holds the frame as the first of several. */
  #begin(transport: number): void {
    this.#transport = transport;
    this.#headersEnd = transport + tcpHeaderLength(this.#frame, transport);
    this.#segmentBytes = this.#length - this.#headersEnd;
    this.#nextSequence = (tcpSequence(this.#frame, transport) + this.#segmentBytes) >>> 0;
    this.#nextIdentification = (ipv4Identification(this.#frame, network) + 1) & 0xffff;
    this.#isVerified = false;
    // What is pushed on is not to wait for more.
    if ((tcpFlagsOf(this.#frame, transport) & tcpFlags.psh) !== 0) this.flush();
  }

  /** Hands on what is held: a burst is over. */
  flush(): void {
    const frames = this.#frames;
    if (frames === 0) return;
    this.#frames = 0;
    const { bytes } = this.#buffer;
    if (frames === 1) writeVirtioNetHeader(bytes, 0, virtioGso.none, 0, 0, 0, 0);
    else this.#finish(bytes);
    this.#handle(bytes, virtioNetHeaderLength + this.#length, frames);
  }

  /** Whether a segment has the headers of what is held, and comes next. */
  #follows(bytes: Uint8Array, offset: number, transport: number): boolean {
    const frame = this.#frame;
    const held = this.#transport;
    if (transport !== held || !sameBytes(bytes, offset, frame, 0, ethernetHeaderLength)) return false;
    const ip = offset + network;
    const isSameHost = isIpv4Frame(frame) ? this.#followsIpv4(bytes, ip) : this.#followsIpv6(bytes, ip);
    const tcp = offset + transport;
    return (
      isSameHost &&
      tcpSequence(bytes, tcp) === this.#nextSequence &&
      readUint32Be(bytes, tcp) === readUint32Be(frame, held) &&
      tcpAcknowledgment(bytes, tcp) === tcpAcknowledgment(frame, held) &&
      tcpWindow(bytes, tcp) === tcpWindow(frame, held) &&
      bytes[tcp + tcpDataOffset] === frame[held + tcpDataOffset] &&
      sameBytes(
        bytes,
        tcp + tcpMinHeaderLength,
        frame,
        held + tcpMinHeaderLength,
        this.#headersEnd - held - tcpMinHeaderLength,
      )
    );
  }

  #followsIpv4(bytes: Uint8Array, ip: number): boolean {
    const frame = this.#frame;
    // A packet that must not be fragmented has no use for its identification (RFC 6864).
    const hasTurn = ipv4DontFragment(bytes, ip) || ipv4Identification(bytes, ip) === this.#nextIdentification;
    return (
      hasTurn &&
      // Version and TOS; flags; time to live and protocol; addresses.
      readUint16Be(bytes, ip) === readUint16Be(frame, network) &&
      readUint16Be(bytes, ip + 6) === readUint16Be(frame, network + 6) &&
      readUint16Be(bytes, ip + 8) === readUint16Be(frame, network + 8) &&
      sameBytes(bytes, ip + 12, frame, network + 12, 8)
    );
  }

  #followsIpv6(bytes: Uint8Array, ip: number): boolean {
    const frame = this.#frame;
    // Version, traffic class and flow label; next header, hop limit and addresses.
    return (
      readUint32Be(bytes, ip) === readUint32Be(frame, network) &&
      sameBytes(bytes, ip + 6, frame, network + 6, ipv6HeaderLength - 6)
    );
  }

  /** Puts a segment's payload behind what is held. False: it does not fit, or one of them is damaged. */
  #append(bytes: Uint8Array, offset: number, length: number): boolean {
    const headersEnd = this.#headersEnd;
    const transport = this.#transport;
    const payloadLength = length - headersEnd;
    const end = this.#length;
    if (payloadLength > this.#segmentBytes || end + payloadLength - network > longestIpBytes) return false;
    if (!this.#isVerified && !this.#firstIsGood()) return false;
    this.#frame.set(bytes.subarray(offset + headersEnd, offset + length), end);
    const header = onesComplementSum(bytes, offset + transport, headersEnd - transport);
    const pseudoHeader = this.#pseudoHeaderSum(length - transport);
    if (foldSum(header + pseudoHeader + this.#sum(end, payloadLength)) !== 0xffff) return false;
    const flags = tcpFlagsOf(bytes, offset + transport);
    this.#frame[transport + tcpFlagsOffset] = flags | tcpFlagsOf(this.#frame, transport);
    this.#frames++;
    this.#length = end + payloadLength;
    this.#nextSequence = (this.#nextSequence + payloadLength) >>> 0;
    this.#nextIdentification = (this.#nextIdentification + 1) & 0xffff;
    // What is pushed on is not to wait for more, and nothing can follow a shorter one.
    if ((flags & tcpFlags.psh) !== 0 || payloadLength < this.#segmentBytes) this.flush();
    return true;
  }

  #firstIsGood(): boolean {
    const length = this.#length - this.#transport;
    this.#isVerified = true;
    return foldSum(this.#pseudoHeaderSum(length) + this.#sum(this.#transport, length)) === 0xffff;
  }

  /** Makes the headers those of all that has been joined. */
  #finish(bytes: Uint8Array): void {
    const frame = this.#frame;
    const transport = this.#transport;
    const isIpv4 = isIpv4Frame(frame);
    if (isIpv4) {
      writeUint16Be(frame, network + ipv4TotalLengthOffset, this.#length - network);
      writeUint16Be(frame, network + ipv4ChecksumOffset, 0);
      writeUint16Be(
        frame,
        network + ipv4ChecksumOffset,
        complementSum(onesComplementSum(frame, network, ipv4MinHeaderLength)),
      );
    } else {
      writeUint16Be(frame, network + ipv6PayloadLengthOffset, this.#length - transport);
    }
    // Whoever cuts it again begins with the sum of the pseudo header.
    writeUint16Be(frame, transport + tcpChecksumOffset, this.#pseudoHeaderSum(this.#length - transport));
    writeVirtioNetHeader(
      bytes,
      virtioNeedsChecksum,
      isIpv4 ? virtioGso.tcpv4 : virtioGso.tcpv6,
      this.#headersEnd,
      this.#segmentBytes,
      transport,
      tcpChecksumOffset,
    );
  }

  /** Of the addresses that are held. @param length of the TCP segment, header included */
  #pseudoHeaderSum(length: number): number {
    const isIpv4 = isIpv4Frame(this.#frame);
    const addresses = isIpv4 ? this.#sum(network + 12, 8) : this.#sum(network + 8, 32);
    return foldSum(addresses + ipProtocolTcp + length);
  }

  /** The sum of a part of the frame. */
  #sum(offset: number, length: number): number {
    return this.#buffer.sum(virtioNetHeaderLength + offset, length);
  }
}

function isIpv4Frame(frame: Uint8Array): boolean {
  return ethernetType(frame, 0) === etherTypeIpv4;
}

/** Where in a frame TCP begins; -1: it is no segment that could be joined with others. */
function transportOffset(bytes: Uint8Array, offset: number, length: number): number {
  if (length < ethernetHeaderLength) return -1;
  const ip = offset + network;
  const ipLength = length - network;
  const headerLength = networkLength(bytes, offset, ip, ipLength);
  if (headerLength < 0) return -1;
  const tcp = ip + headerLength;
  const tcpLength = ipLength - headerLength;
  const tcpHeader = checkTcp(bytes, tcp, tcpLength);
  const hasPayload = tcpHeader > 0 && tcpHeader < tcpLength;
  if (!hasPayload || ((bytes[tcp + tcpDataOffset] ?? 0) & reservedBits) !== 0) return -1;
  return (tcpFlagsOf(bytes, tcp) & ~tcpFlags.psh) === tcpFlags.ack ? network + headerLength : -1;
}

/** The length of an IP header without options, in front of TCP that fills the frame; -1: it is none. */
function networkLength(bytes: Uint8Array, offset: number, ip: number, ipLength: number): number {
  switch (ethernetType(bytes, offset)) {
    case etherTypeIpv4: {
      const isPlain =
        checkIpv4(bytes, ip, ipLength) === ipv4MinHeaderLength &&
        ipv4TotalLength(bytes, ip) === ipLength &&
        !ipv4IsFragment(bytes, ip) &&
        ipv4Protocol(bytes, ip) === ipProtocolTcp &&
        internetChecksumIsGood(bytes, ip, ipv4MinHeaderLength);
      return isPlain ? ipv4MinHeaderLength : -1;
    }
    case etherTypeIpv6: {
      const isPlain =
        checkIpv6(bytes, ip, ipLength) > 0 &&
        ipv6HeaderLength + ipv6PayloadLength(bytes, ip) === ipLength &&
        ipv6NextHeader(bytes, ip) === ipProtocolTcp;
      return isPlain ? ipv6HeaderLength : -1;
    }
    default:
      return -1;
  }
}

function sameBytes(a: Uint8Array, aOffset: number, b: Uint8Array, bOffset: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[aOffset + i] !== b[bOffset + i]) return false;
  return true;
}
