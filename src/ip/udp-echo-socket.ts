import { readUint32Be, writeUint32Be } from '../wire/byte-order.ts';
import { ipProtocolUdp } from '../wire/ipv4.ts';
import { udpHeaderLength, writeUdp } from '../wire/udp.ts';
import type { EchoSocket } from './echo-socket.ts';
import type { SendResult } from './icmp-socket.ts';
import { type DatagramHandler, type EchoHandler, ipv4PayloadOffset, type IpStack } from './ip-stack.ts';

/** Of the Echo Protocol (RFC 862). */
const echoPort = 7;
/** The payload's first bytes are the sequence number; a shorter payload is made so long. */
const sequenceBytes = 4;

/** Sends datagrams to the echo service of another host, and hands over those that come back. */
export class UdpEchoSocket implements EchoSocket, DatagramHandler {
  readonly headerBytes = udpHeaderLength;
  readonly #stack: IpStack;
  readonly #port: number;
  readonly #handler: EchoHandler;

  /** @param port of this end; no other socket of the stack has it */
  constructor(stack: IpStack, port: number, handler: EchoHandler) {
    this.#stack = stack;
    this.#port = port;
    this.#handler = handler;
    stack.setDatagramHandler(port, this);
  }

  sendEcho(
    destination: number,
    sequence: number,
    tos: number,
    payloadBytes: number,
    tag: number,
    nowUs: number,
  ): SendResult {
    const source = this.#stack.configuration?.address;
    const length = Math.max(sequenceBytes, payloadBytes);
    const packet = this.#stack.beginPacket(destination, tos, ipProtocolUdp, udpHeaderLength + length, nowUs);
    if (packet === undefined || source === undefined) {
      packet?.release();
      return 'unresolved';
    }
    const payloadOffset = ipv4PayloadOffset + udpHeaderLength;
    for (let i = sequenceBytes; i < length; i++) packet.bytes[payloadOffset + i] = i & 0xff;
    writeUint32Be(packet.bytes, payloadOffset, sequence >>> 0);
    writeUdp(packet.bytes, ipv4PayloadOffset, this.#port, echoPort, length, source, destination);
    packet.tag = tag;
    return this.#stack.send(packet, nowUs) ? 'queued' : 'dropped';
  }

  handleDatagram(
    bytes: Uint8Array,
    payloadOffset: number,
    payloadLength: number,
    _source: number,
    sourcePort: number,
    nowUs: number,
  ): boolean {
    if (sourcePort !== echoPort || payloadLength < sequenceBytes) return false;
    // As of ICMP, the low 16 bits say which one it is.
    this.#handler.handleEchoReply(readUint32Be(bytes, payloadOffset) & 0xffff, nowUs);
    return true;
  }

  close(): void {
    this.#stack.setDatagramHandler(this.#port, undefined);
  }
}
