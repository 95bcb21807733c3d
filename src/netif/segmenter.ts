import { type Packet, packetCapacityBytes } from '../usbnet/packet.ts';
import { readUint16Be, writeUint16Be, writeUint32Be } from '../wire/byte-order.ts';
import { complementSum, foldSum } from '../wire/checksum.ts';
import { ethernetHeaderLength, etherTypeIpv4, etherTypeIpv6 } from '../wire/ethernet.ts';
import {
  checkIpv4,
  ipProtocolUdp,
  ipv4ChecksumOffset,
  ipv4Identification,
  ipv4IdentificationOffset,
  ipv4IsFragment,
  ipv4Protocol,
  ipv4TotalLength,
  ipv4TotalLengthOffset,
} from '../wire/ipv4.ts';
import {
  checkIpv6,
  ipv6HeaderLength,
  ipv6PayloadLength,
  ipv6PayloadLengthOffset,
  ipv6PayloadOffset,
} from '../wire/ipv6.ts';
import {
  checkTcp,
  ipProtocolTcp,
  tcpChecksumOffset,
  tcpFlags,
  tcpFlagsOf,
  tcpFlagsOffset,
  tcpSequence,
  tcpSequenceOffset,
} from '../wire/tcp.ts';
import { udpChecksumOffset, udpHeaderLength, udpLengthOffset } from '../wire/udp.ts';
import {
  virtioChecksumOffset,
  virtioChecksumStart,
  virtioFlags,
  virtioGso,
  virtioGsoEcn,
  virtioGsoSize,
  virtioGsoType,
  virtioHeaderLength,
  virtioNeedsChecksum,
  virtioNetHeaderLength,
} from '../wire/virtio-net-header.ts';
import { WordBuffer } from '../wire/word-buffer.ts';
import { networkHeaderOffset } from './network-header.ts';

/** The longest IP packet in the longest frame, and one byte more by which a frame that was cut off is known. */
const longestReadBytes = virtioNetHeaderLength + ethernetHeaderLength + 8 + ipv6HeaderLength + 65_535 + 1;

/** So many parts of it are kept as views: more than a long segment has at any usual MTU. */
const keptParts = 128;

/** No TCP and no UDP: a frame that is one. */
type Payload = 'frame' | 'tcp' | 'udp';

/**
 * Does for a sender what it has left to the interface (Linux's generic segmentation offload, GSO): cuts a segment of up to
 * 64 KB into frames, each with its headers and checksums, and fills in the checksum of a single frame.
 *
 * One at a time: what arrives is put into {@link bytes}, {@link load}ed, and then taken out frame by frame.
 */
export class Segmenter {
  readonly #buffer = new WordBuffer(longestReadBytes);
  /** The frame alone, behind its header; where it ends is {@link #end}. */
  readonly #frame = this.#buffer.bytes.subarray(virtioNetHeaderLength);
  /** Parts of the frame, kept: those of one segment are where those of the one before were. The first is the headers. */
  readonly #parts: Uint8Array[] = [];
  #payload: Payload = 'frame';
  #isIpv4 = false;
  /** Where these headers begin, and where the payload does. */
  #network = 0;
  #transport = 0;
  #headersEnd = 0;
  #end = 0;
  /** What is left begins here, the next piece being this one; nothing is left at the end. */
  #at = 0;
  #index = 0;
  #segmentBytes = 0;
  /** Sums of the headers without the fields that are each piece's own. */
  #ipv4Sum = 0;
  #transportSum = 0;
  #identification = 0;
  #sequence = 0;
  #flags = 0;

  /** Where to put what arrives: a virtio_net_hdr and an Ethernet frame. If it fills this, it was too long. */
  get bytes(): Uint8Array {
    return this.#buffer.bytes;
  }

  /** Whether every frame has been taken out. */
  get isEmpty(): boolean {
    return this.#at === this.#end;
  }

  /**
   * Looks at what arrived.
   * @param length of header and frame together
   * @returns false: the header and the frame don't go together, or it is too long for a packet; there is nothing to take out
   */
  load(length: number): boolean {
    this.#at = 0;
    this.#index = 0;
    this.#end = length - virtioNetHeaderLength;
    const isWhole = this.#end >= ethernetHeaderLength && length < this.#buffer.bytes.length;
    const isGood = isWhole && this.#look();
    if (!isGood) this.#end = 0;
    return isGood;
  }

  #look(): boolean {
    const { bytes } = this.#buffer;
    if (virtioHeaderLength(bytes) > this.#end) return false;
    const hasEcn = virtioGsoEcn(bytes);
    switch (virtioGsoType(bytes)) {
      case virtioGso.none:
        return !hasEcn && this.#lookAtFrame();
      case virtioGso.tcpv4:
        return this.#lookAtSegment('tcp', true);
      case virtioGso.tcpv6:
        return this.#lookAtSegment('tcp', false);
      case virtioGso.udp:
        return !hasEcn && this.#lookAtSegment('udp', undefined);
      default:
        return false;
    }
  }

  /** A frame that is one; what is missing of its checksum is filled in. */
  #lookAtFrame(): boolean {
    const { bytes } = this.#buffer;
    this.#payload = 'frame';
    if (this.#end > packetCapacityBytes) return false;
    if ((virtioFlags(bytes) & virtioNeedsChecksum) === 0) return true;
    const start = virtioChecksumStart(bytes);
    const field = start + virtioChecksumOffset(bytes);
    if (start < ethernetHeaderLength || field + 2 > this.#end) return false;
    const sum = this.#sum(start, this.#end - start);
    writeUint16Be(this.#frame, field, neverZero(complementSum(sum)));
    return true;
  }

  #lookAtSegment(payload: 'tcp' | 'udp', asksForIpv4: boolean | undefined): boolean {
    const { bytes } = this.#buffer;
    const frame = this.#frame;
    this.#payload = payload;
    this.#network = networkHeaderOffset(frame, this.#end);
    const type = readUint16Be(frame, this.#network - 2);
    this.#isIpv4 = type === etherTypeIpv4;
    if (!this.#isIpv4 && type !== etherTypeIpv6) return false;
    if (asksForIpv4 !== undefined && asksForIpv4 !== this.#isIpv4) return false;
    const isTcp = payload === 'tcp';
    const protocol = isTcp ? ipProtocolTcp : ipProtocolUdp;
    this.#transport = this.#isIpv4 ? this.#ipv4Transport(protocol) : this.#ipv6Transport(protocol);
    if (this.#transport < 0) return false;
    const transportLength = this.#end - this.#transport;
    const transportHeaderLength = isTcp ? checkTcp(frame, this.#transport, transportLength) : udpHeaderLength;
    this.#headersEnd = this.#transport + transportHeaderLength;
    this.#segmentBytes = virtioGsoSize(bytes);
    if (transportHeaderLength < 0 || this.#headersEnd >= this.#end) return false;
    if (this.#segmentBytes === 0 || this.#headersEnd + this.#segmentBytes > packetCapacityBytes) return false;
    const checksumField = isTcp ? tcpChecksumOffset : udpChecksumOffset;
    if ((virtioFlags(bytes) & virtioNeedsChecksum) === 0) return false;
    if (virtioChecksumStart(bytes) !== this.#transport) return false;
    if (virtioChecksumOffset(bytes) !== checksumField) return false;
    this.#prepare(transportHeaderLength, transportLength, checksumField);
    return true;
  }

  /** Where the payload of IPv4 begins; -1: it is none that can be cut. */
  #ipv4Transport(protocol: number): number {
    const frame = this.#frame;
    const network = this.#network;
    const length = this.#end - network;
    const headerLength = checkIpv4(frame, network, length);
    if (headerLength < 0 || ipv4TotalLength(frame, network) !== length) return -1;
    if (ipv4IsFragment(frame, network) || ipv4Protocol(frame, network) !== protocol) return -1;
    return network + headerLength;
  }

  #ipv6Transport(protocol: number): number {
    const frame = this.#frame;
    const network = this.#network;
    const length = this.#end - network;
    if (checkIpv6(frame, network, length) < 0) return -1;
    if (ipv6HeaderLength + ipv6PayloadLength(frame, network) !== length) return -1;
    return ipv6PayloadOffset(frame, network, protocol);
  }

  /** Notes the fields that are each piece's own, and sums up the headers without them. */
  #prepare(transportHeaderLength: number, transportLength: number, checksumField: number): void {
    const frame = this.#frame;
    const network = this.#network;
    const transport = this.#transport;
    this.#at = this.#headersEnd;
    // The field holds the sum of the pseudo header, whose length is that of all pieces together.
    const pseudoHeaderSum = readUint16Be(frame, transport + checksumField) + (~transportLength & 0xffff);
    writeUint16Be(frame, transport + checksumField, 0);
    if (this.#payload === 'tcp') {
      this.#sequence = tcpSequence(frame, transport);
      this.#flags = tcpFlagsOf(frame, transport);
      writeUint32Be(frame, transport + tcpSequenceOffset, 0);
      frame[transport + tcpFlagsOffset] = 0;
    } else {
      writeUint16Be(frame, transport + udpLengthOffset, 0);
    }
    this.#transportSum = foldSum(pseudoHeaderSum + this.#sum(transport, transportHeaderLength));
    if (!this.#isIpv4) return;
    this.#identification = ipv4Identification(frame, network);
    writeUint16Be(frame, network + ipv4TotalLengthOffset, 0);
    writeUint16Be(frame, network + ipv4IdentificationOffset, 0);
    writeUint16Be(frame, network + ipv4ChecksumOffset, 0);
    this.#ipv4Sum = this.#sum(network, transport - network);
  }

  /** Puts the next frame into a packet. Only if there is one: {@link isEmpty}. */
  next(packet: Packet): void {
    if (this.#payload === 'frame') {
      packet.bytes.set(this.#part(0, 0, this.#end));
      packet.length = this.#end;
      this.#at = this.#end;
      return;
    }
    const headersEnd = this.#headersEnd;
    const from = this.#at;
    const payloadLength = Math.min(this.#segmentBytes, this.#end - from);
    this.#index++;
    this.#at = from + payloadLength;
    packet.length = headersEnd + payloadLength;
    packet.bytes.set(this.#part(0, 0, headersEnd));
    packet.bytes.set(this.#part(this.#index, from, payloadLength), headersEnd);
    this.#writeNetworkHeader(packet);
    const sum = this.#transportSum + this.#sum(from, payloadLength) + packet.length - this.#transport;
    if (this.#payload === 'tcp') this.#writeTcpHeader(packet.bytes, from, sum);
    else this.#writeUdpHeader(packet.bytes, packet.length - this.#transport, sum);
  }

  #writeNetworkHeader({ bytes, length }: Packet): void {
    const network = this.#network;
    if (!this.#isIpv4) {
      writeUint16Be(bytes, network + ipv6PayloadLengthOffset, length - network - ipv6HeaderLength);
      return;
    }
    const identification = (this.#identification + this.#index - 1) & 0xffff;
    const totalLength = length - network;
    writeUint16Be(bytes, network + ipv4TotalLengthOffset, totalLength);
    writeUint16Be(bytes, network + ipv4IdentificationOffset, identification);
    const sum = foldSum(this.#ipv4Sum + identification + totalLength);
    writeUint16Be(bytes, network + ipv4ChecksumOffset, complementSum(sum));
  }

  /** @param unfoldedSum of all but the fields that are written here */
  #writeTcpHeader(bytes: Uint8Array, from: number, unfoldedSum: number): void {
    const transport = this.#transport;
    const sequence = (this.#sequence + from - this.#headersEnd) >>> 0;
    // What ends a stream, or pushes it on, belongs to the last; "congestion window reduced" to the first.
    const isLast = this.#at === this.#end;
    const left = (isLast ? 0 : tcpFlags.fin | tcpFlags.psh) | (this.#index === 1 ? 0 : tcpFlags.cwr);
    const flags = this.#flags & ~left;
    writeUint32Be(bytes, transport + tcpSequenceOffset, sequence);
    bytes[transport + tcpFlagsOffset] = flags;
    const sum = foldSum(unfoldedSum + (sequence >>> 16) + (sequence & 0xffff) + flags);
    writeUint16Be(bytes, transport + tcpChecksumOffset, complementSum(sum));
  }

  #writeUdpHeader(bytes: Uint8Array, datagramLength: number, unfoldedSum: number): void {
    const transport = this.#transport;
    writeUint16Be(bytes, transport + udpLengthOffset, datagramLength);
    const checksum = complementSum(foldSum(unfoldedSum + datagramLength));
    writeUint16Be(bytes, transport + udpChecksumOffset, neverZero(checksum));
  }

  /** The sum of a part of the frame. */
  #sum(offset: number, length: number): number {
    return this.#buffer.sum(virtioNetHeaderLength + offset, length);
  }

  /** A part of the frame; a view that was made before is used again, if it is the same. */
  #part(index: number, offset: number, length: number): Uint8Array {
    const known = this.#parts[index];
    if (known?.length === length && known.byteOffset === virtioNetHeaderLength + offset) return known;
    const part = this.#frame.subarray(offset, offset + length);
    if (index < keptParts) this.#parts[index] = part;
    return part;
  }
}

/** A checksum that happens to be 0 is sent as 0xffff: in UDP, 0 says that there is none; elsewhere it means the same. */
function neverZero(checksum: number): number {
  return checksum === 0 ? 0xffff : checksum;
}
