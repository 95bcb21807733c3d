import { icmpEchoRequest, icmpHeaderLength, writeIcmpEcho } from '../wire/icmp.ts';
import { ipProtocolIcmp } from '../wire/ipv4.ts';
import type { EchoSocket } from './echo-socket.ts';
import { type EchoHandler, ipv4PayloadOffset, type IpStack } from './ip-stack.ts';

/** What became of a packet that was to be sent. `unresolved`: the next hop's MAC address is not known (yet). */
export type SendResult = 'queued' | 'unresolved' | 'dropped';

/** Sends echo requests under one identifier and hands over the replies to them. */
export class IcmpSocket implements EchoSocket {
  readonly headerBytes = icmpHeaderLength;
  readonly #stack: IpStack;
  readonly #identifier: number;

  constructor(stack: IpStack, identifier: number, handler: EchoHandler) {
    this.#stack = stack;
    this.#identifier = identifier;
    stack.setEchoHandler(identifier, handler);
  }

  /**
   * @param tos TOS byte; it also decides the packet's priority in the qdisc
   * @param payloadBytes bytes behind the ICMP header, filled with a pattern
   * @param tag what the packet is to be recognised by when it is reported as sent
   */
  sendEcho(
    destination: number,
    sequence: number,
    tos: number,
    payloadBytes: number,
    tag: number,
    nowUs: number,
  ): SendResult {
    const packet = this.#stack.beginPacket(
      destination,
      tos,
      ipProtocolIcmp,
      icmpHeaderLength + payloadBytes,
      nowUs,
    );
    if (packet === undefined) return 'unresolved';
    const payloadOffset = ipv4PayloadOffset + icmpHeaderLength;
    for (let i = 0; i < payloadBytes; i++) packet.bytes[payloadOffset + i] = i & 0xff;
    writeIcmpEcho(
      packet.bytes,
      ipv4PayloadOffset,
      icmpEchoRequest,
      this.#identifier,
      sequence & 0xffff,
      payloadBytes,
    );
    packet.tag = tag;
    return this.#stack.send(packet, nowUs) ? 'queued' : 'dropped';
  }

  close(): void {
    this.#stack.setEchoHandler(this.#identifier, undefined);
  }
}
