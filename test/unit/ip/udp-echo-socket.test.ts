import { beforeEach, describe, expect, test } from 'vitest';
import { IpStack } from '../../../src/ip/ip-stack.ts';
import { UdpEchoSocket } from '../../../src/ip/udp-echo-socket.ts';
import { arpFrame, ip, ipFrame, LinkDouble, peerMac, readFrame } from './link-double.ts';

const us = ip('10.9.0.2');
const target = ip('10.9.0.1');
const port = 49_101;

let link: LinkDouble;
let stack: IpStack;
let socket: UdpEchoSocket;
let replies: number[];

function hear(frame: Uint8Array): void {
  stack.handleFrame(frame, 0, frame.length, 0);
}

beforeEach(() => {
  link = new LinkDouble();
  stack = new IpStack(link);
  replies = [];
  socket = new UdpEchoSocket(stack, port, { handleEchoReply: (sequence) => replies.push(sequence) });
  stack.configure({ address: us, prefixLength: 24, gateway: undefined });
  stack.resolve(target, 0);
  hear(arpFrame('reply', peerMac, target, us));
  link.take();
});

/** The datagram of the one frame that was sent, header included. */
function sentDatagram(): Uint8Array {
  const [frame] = link.take();
  if (frame === undefined) throw new Error('nothing was sent');
  return readFrame(frame.bytes).payload.slice();
}

/** As the echo service returns it: with its ports exchanged, which leaves the checksum as it is. */
function returned(datagram: Uint8Array): Uint8Array {
  const back = datagram.slice();
  back.set(datagram.subarray(2, 4), 0);
  back.set(datagram.subarray(0, 2), 2);
  return back;
}

describe('a datagram to the echo service', () => {
  test('has port 7, the sequence number, and the size that was asked for', () => {
    expect(socket.sendEcho(target, 0x1_0203, 0x10, 56, 9, 0)).toBe('queued');
    const [frame] = link.sent;
    expect([frame?.tag, frame?.priority]).toEqual([9, 6]);
    const datagram = sentDatagram();
    expect([...datagram.subarray(0, 4)]).toEqual([port >> 8, port & 0xff, 0, 7]);
    expect(datagram).toHaveLength(8 + 56);
    expect([...datagram.subarray(8, 12)]).toEqual([0, 1, 2, 3]);
  });

  test('has room for its number, however short it is to be', () => {
    socket.sendEcho(target, 1, 0, 0, 0, 0);
    expect(sentDatagram()).toHaveLength(8 + 4);
  });

  test('is not sent without an address of our own', () => {
    stack.configure(undefined);
    expect(socket.sendEcho(target, 1, 0, 56, 0, 0)).toBe('unresolved');
  });
});

describe('what comes back', () => {
  test('is known by the low 16 bits of its number', () => {
    socket.sendEcho(target, 0x1_0203, 0, 56, 0, 0);
    hear(ipFrame(17, target, us, returned(sentDatagram())));
    expect(replies).toEqual([0x0203]);
  });

  test('from another port, or too short to have a number, is not ours', () => {
    socket.sendEcho(target, 5, 0, 56, 0, 0);
    const other = returned(sentDatagram());
    // Without a checksum, since that would no longer be right.
    other.set([0, 9, port >> 8, port & 0xff, 0, 64, 0, 0], 0);
    hear(ipFrame(17, target, us, other));
    hear(ipFrame(17, target, us, Uint8Array.of(0, 7, port >> 8, port & 0xff, 0, 10, 0, 0, 1, 2)));
    expect(replies).toEqual([]);
  });

  test('after the end reaches nobody', () => {
    socket.sendEcho(target, 5, 0, 56, 0, 0);
    const back = returned(sentDatagram());
    socket.close();
    hear(ipFrame(17, target, us, back));
    expect(replies).toEqual([]);
  });
});
