import { readUint16Be, readUint32Be, writeUint16Be, writeUint32Be } from '../../wire/byte-order.ts';
import {
  complementSum,
  internetChecksum,
  internetChecksumIsGood,
  onesComplementSum,
} from '../../wire/checksum.ts';
import { ethernetHeaderLength, ethernetType, etherTypeIpv4, etherTypeIpv6 } from '../../wire/ethernet.ts';

const ipProtocols = { tcp: 6, udp: 17 } as const;
const ipv6HeaderLength = 40;
const fragmentMask = 0x3fff;
const tcpHeaderLength = 20;
const udpHeaderLength = 8;
const tcpFlags = { fin: 0x01, psh: 0x08, cwr: 0x80 } as const;
/** Where the checksum is in a header. */
const checksumOffsets = { ip: 10, tcp: 16, udp: 6 } as const;

/**
 * Where the headers of an IP packet are in a frame: what a chip that deals with checksums has to find out. Used again for
 * frame after frame.
 */
export class FrameHeaders {
  /** 0: no IP packet. */
  ipVersion: 0 | 4 | 6 = 0;
  ipHeaderLength = 0;
  /** Undefined: neither TCP nor UDP, or a fragment. */
  protocol: 'tcp' | 'udp' | undefined;
  /** Of the TCP or UDP header, and of it with its payload. */
  transportOffset = 0;
  transportLength = 0;
  /** Of the TCP or UDP header alone. */
  transportHeaderLength = 0;

  /** Looks at `bytes[0 … length)`. What does not add up is no IP packet. */
  parse(bytes: Uint8Array, length: number): void {
    this.ipVersion = 0;
    this.protocol = undefined;
    const ip = ethernetHeaderLength;
    const type = length < ip + tcpHeaderLength ? 0 : ethernetType(bytes, 0);
    if (type === etherTypeIpv4) this.#parseIpv4(bytes, ip, length);
    else if (type === etherTypeIpv6) this.#parseIpv6(bytes, ip, length);
  }

  #parseIpv4(bytes: Uint8Array, ip: number, length: number): void {
    const headerLength = ((bytes[ip] ?? 0) & 0x0f) * 4;
    const totalLength = readUint16Be(bytes, ip + 2);
    if ((bytes[ip] ?? 0) >> 4 !== 4 || headerLength < 20 || totalLength < headerLength) return;
    if (ip + totalLength > length) return;
    this.ipVersion = 4;
    this.ipHeaderLength = headerLength;
    if ((readUint16Be(bytes, ip + 6) & fragmentMask) !== 0) return;
    this.#parseTransport(bytes, bytes[ip + 9] ?? 0, ip + headerLength, totalLength - headerLength);
  }

  #parseIpv6(bytes: Uint8Array, ip: number, length: number): void {
    const payloadLength = readUint16Be(bytes, ip + 4);
    if ((bytes[ip] ?? 0) >> 4 !== 6 || ip + ipv6HeaderLength + payloadLength > length) return;
    this.ipVersion = 6;
    this.ipHeaderLength = ipv6HeaderLength;
    this.#parseTransport(bytes, bytes[ip + 6] ?? 0, ip + ipv6HeaderLength, payloadLength);
  }

  #parseTransport(bytes: Uint8Array, protocol: number, offset: number, length: number): void {
    this.transportOffset = offset;
    this.transportLength = length;
    if (protocol === ipProtocols.tcp && length >= tcpHeaderLength) {
      const headerLength = ((bytes[offset + 12] ?? 0) >> 4) * 4;
      if (headerLength < tcpHeaderLength || headerLength > length) return;
      this.transportHeaderLength = headerLength;
      this.protocol = 'tcp';
    } else if (protocol === ipProtocols.udp && length >= udpHeaderLength) {
      this.transportHeaderLength = udpHeaderLength;
      this.protocol = 'udp';
    }
  }
}

/** The sum of addresses, protocol and length that TCP and UDP include in their checksum. */
function pseudoHeaderSum(bytes: Uint8Array, headers: FrameHeaders): number {
  const ip = ethernetHeaderLength;
  const protocol = headers.protocol === 'tcp' ? ipProtocols.tcp : ipProtocols.udp;
  const addresses =
    headers.ipVersion === 4 ? onesComplementSum(bytes, ip + 12, 8) : onesComplementSum(bytes, ip + 8, 32);
  const sum = addresses + protocol + headers.transportLength;
  return (sum & 0xffff) + (sum >>> 16);
}

export interface OffloadedChecksums {
  readonly ip: boolean;
  readonly tcp: boolean;
  readonly udp: boolean;
}

/** Writes the checksums of a frame, whatever stood there. */
export function writeChecksums(bytes: Uint8Array, headers: FrameHeaders, which: OffloadedChecksums): void {
  const ip = ethernetHeaderLength;
  if (headers.ipVersion === 4 && which.ip) {
    writeUint16Be(bytes, ip + checksumOffsets.ip, 0);
    writeUint16Be(bytes, ip + checksumOffsets.ip, internetChecksum(bytes, ip, headers.ipHeaderLength));
  }
  const { protocol, transportOffset, transportLength } = headers;
  if (protocol === undefined || !which[protocol]) return;
  const field = transportOffset + checksumOffsets[protocol];
  writeUint16Be(bytes, field, 0);
  const sum = onesComplementSum(bytes, transportOffset, transportLength, pseudoHeaderSum(bytes, headers));
  const checksum = complementSum(sum);
  writeUint16Be(bytes, field, protocol === 'udp' && checksum === 0 ? 0xffff : checksum);
}

/** Whether the header of IPv4 adds up; true of what has no checksum. */
export function ipChecksumIsGood(bytes: Uint8Array, headers: FrameHeaders): boolean {
  return (
    headers.ipVersion !== 4 || internetChecksumIsGood(bytes, ethernetHeaderLength, headers.ipHeaderLength)
  );
}

/** Whether TCP or UDP adds up; true of what has no checksum. */
export function transportChecksumIsGood(bytes: Uint8Array, headers: FrameHeaders): boolean {
  const { protocol, transportOffset, transportLength } = headers;
  if (protocol === undefined) return true;
  if (protocol === 'udp' && readUint16Be(bytes, transportOffset + checksumOffsets.udp) === 0) return true;
  return (
    onesComplementSum(bytes, transportOffset, transportLength, pseudoHeaderSum(bytes, headers)) === 0xffff
  );
}

/**
 * Cuts a frame with a long TCP segment into frames with at most `segmentBytes` of payload each (TSO), and hands them over
 * one by one, without checksums. Each piece is built in `scratch`. False: it is no TCP segment, or the pieces are too long
 * for `scratch`.
 */
export function segmentTcp(
  bytes: Uint8Array,
  headers: FrameHeaders,
  segmentBytes: number,
  scratch: Uint8Array,
  handle: (frame: Uint8Array, length: number) => void,
): boolean {
  if (headers.protocol !== 'tcp') return false;
  const ip = ethernetHeaderLength;
  const tcp = headers.transportOffset;
  const payload = tcp + headers.transportHeaderLength;
  const payloadLength = headers.transportLength - headers.transportHeaderLength;
  if (segmentBytes === 0 || payload + segmentBytes > scratch.length) return false;
  const isIpv4 = headers.ipVersion === 4;
  const identification = readUint16Be(bytes, ip + 4);
  const sequence = readUint32Be(bytes, tcp + 4);
  const flags = bytes[tcp + 13] ?? 0;

  for (let done = 0, index = 0; done < payloadLength || index === 0; index++) {
    const length = Math.min(segmentBytes, payloadLength - done);
    const last = done + length === payloadLength;
    scratch.set(bytes.subarray(0, payload));
    scratch.set(bytes.subarray(payload + done, payload + done + length), payload);
    if (isIpv4) {
      writeUint16Be(scratch, ip + 2, payload - ip + length);
      writeUint16Be(scratch, ip + 4, identification + index);
    } else {
      writeUint16Be(scratch, ip + 4, payload - tcp + length);
    }
    writeUint32Be(scratch, tcp + 4, sequence + done);
    // What ends a stream, or pushes it on, belongs to the end; "window reduced" to the beginning.
    const dropped = (last ? 0 : tcpFlags.fin | tcpFlags.psh) | (index === 0 ? 0 : tcpFlags.cwr);
    scratch[tcp + 13] = flags & ~dropped;
    handle(scratch, payload + length);
    done += length;
  }
  return true;
}
