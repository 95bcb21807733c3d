import type { SendResult } from './icmp-socket.ts';

/** Sends numbered packets that the other end returns as they are, and hands over those that come back. */
export interface EchoSocket {
  /** Bytes behind the IPv4 header that are not payload. */
  readonly headerBytes: number;
  /**
   * @param tos TOS byte; it also decides the packet's priority in the qdisc
   * @param tag what the packet is to be recognised by when it is reported as sent
   */
  sendEcho(
    destination: number,
    sequence: number,
    tos: number,
    payloadBytes: number,
    tag: number,
    nowUs: number,
  ): SendResult;
  close(): void;
}
