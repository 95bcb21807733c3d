import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IcmpSocket } from '../../../src/ip/icmp-socket.ts';
import { IpStack } from '../../../src/ip/ip-stack.ts';
import {
  arpFrame,
  echo,
  ip,
  ipFrame,
  LinkDouble,
  ourMac,
  peerMac,
  plainSum,
  readArp,
  readFrame,
  udpFrame,
} from './link-double.ts';

const us = ip('10.9.0.2');
const gateway = ip('10.9.0.1');
const neighbour = ip('10.9.0.7');
const faraway = ip('192.0.2.33');
const broadcast = Uint8Array.of(255, 255, 255, 255, 255, 255);
const second = 1_000_000;

interface Host {
  readonly link: LinkDouble;
  readonly stack: IpStack;
  readonly hear: (frame: Uint8Array, nowUs?: number) => void;
}

function makeHost(configured = true): Host {
  const link = new LinkDouble();
  const stack = new IpStack(link);
  if (configured) stack.configure({ address: us, prefixLength: 24, gateway });
  return { link, stack, hear: (frame, nowUs = 0) => stack.handleFrame(frame, 0, frame.length, nowUs) };
}

/** With the gateway's and the neighbour's MAC addresses known. */
function makeResolvedHost(): Host {
  const host = makeHost();
  for (const address of [gateway, neighbour]) {
    host.stack.resolve(address, 0);
    host.hear(arpFrame('reply', peerMac, address, us));
  }
  host.link.take();
  return host;
}

describe('ARP: asking', () => {
  test('an unknown next hop is asked for by broadcast; an answer makes it known', () => {
    const { link, stack, hear } = makeHost();
    expect(stack.resolve(neighbour, 0)).toBeUndefined();
    const [request] = link.take();
    expect(readArp(request?.bytes ?? new Uint8Array(0))).toEqual({
      operation: 1,
      senderMac: ourMac,
      senderIp: us,
      targetMac: new Uint8Array(6),
      targetIp: neighbour,
    });
    expect([request?.bytes.subarray(0, 6), request?.priority]).toEqual([broadcast, 7]);
    hear(arpFrame('reply', peerMac, neighbour, us));
    expect(stack.resolve(neighbour, 1)).toEqual(peerMac);
    expect(link.take()).toEqual([]);
  });

  test('what is not on the link goes to the gateway; without one there is no route', () => {
    const { link, stack } = makeHost();
    stack.resolve(faraway, 0);
    expect(readArp(link.take()[0]?.bytes ?? new Uint8Array(0))?.targetIp).toBe(gateway);
    stack.configure({ address: us, prefixLength: 24, gateway: undefined });
    expect([stack.resolve(faraway, 0), stack.counters.noRoute]).toEqual([undefined, 1]);
    expect(stack.isUnreachable(faraway)).toBe(true);
    expect(link.take()).toEqual([]);
  });

  test('once a second, three times, then it counts as unreachable', () => {
    const { link, stack } = makeHost();
    stack.resolve(neighbour, 0);
    const times: number[] = [];
    for (let nowUs = 0; nowUs < 10 * second; nowUs += 100_000) {
      stack.poll(nowUs);
      times.push(...link.take().map((frame) => frame.nowUs));
    }
    expect(times).toEqual([0, second, 2 * second]);
    expect(stack.isUnreachable(neighbour)).toBe(true);
    expect(stack.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('many lookups while it waits are one question', () => {
    const { link, stack } = makeHost();
    for (let i = 0; i < 50; i++) stack.resolve(neighbour, i);
    expect(link.take()).toHaveLength(1);
    expect(stack.counters.unresolved).toBe(50);
  });

  test('an unreachable one is asked for again, when wanted, after three seconds; it stays unreachable meanwhile', () => {
    const { link, stack, hear } = makeHost();
    stack.resolve(neighbour, 0);
    for (let nowUs = 0; nowUs <= 3 * second; nowUs += second) stack.poll(nowUs);
    link.take();
    stack.resolve(neighbour, 5 * second);
    expect(link.take()).toEqual([]);
    stack.resolve(neighbour, 6 * second);
    expect([link.take().length, stack.isUnreachable(neighbour)]).toEqual([1, true]);
    hear(arpFrame('reply', peerMac, neighbour, us), 6 * second);
    expect([stack.resolve(neighbour, 6 * second), stack.isUnreachable(neighbour)]).toEqual([peerMac, false]);
  });

  test('what is known is confirmed after thirty seconds, and stays in use meanwhile', () => {
    const { link, stack, hear } = makeResolvedHost();
    expect(stack.resolve(neighbour, 30 * second - 1)).toEqual(peerMac);
    expect(link.take()).toEqual([]);
    expect(stack.resolve(neighbour, 30 * second)).toEqual(peerMac);
    expect(link.take()).toHaveLength(1);
    expect(stack.resolve(neighbour, 30 * second + 1)).toEqual(peerMac);
    expect(link.take()).toEqual([]);
    const moved = Uint8Array.of(2, 0, 0, 0, 0, 0x77);
    hear(arpFrame('reply', moved, neighbour, us), 30 * second + 2);
    expect(stack.resolve(neighbour, 30 * second + 3)).toEqual(moved);
  });

  test('another address of our own forgets all neighbours', () => {
    const { stack, link } = makeResolvedHost();
    stack.configure({ address: ip('10.9.0.3'), prefixLength: 24, gateway });
    expect(stack.resolve(neighbour, 0)).toBeUndefined();
    expect(readArp(link.take()[0]?.bytes ?? new Uint8Array(0))?.senderIp).toBe(ip('10.9.0.3'));
  });
});

describe('ARP: being asked, and hostile messages', () => {
  test('a question for our address is answered to who asked', () => {
    const { link, hear } = makeHost();
    hear(arpFrame('request', peerMac, neighbour, us));
    const [reply] = link.take();
    expect(readArp(reply?.bytes ?? new Uint8Array(0))).toEqual({
      operation: 2,
      senderMac: ourMac,
      senderIp: us,
      targetMac: peerMac,
      targetIp: neighbour,
    });
    expect(reply?.bytes.subarray(0, 6)).toEqual(peerMac);
  });

  test('one for another address, or while we have none, is not', () => {
    const { link, stack, hear } = makeHost();
    hear(arpFrame('request', peerMac, neighbour, gateway));
    stack.configure(undefined);
    hear(arpFrame('request', peerMac, neighbour, us));
    expect(link.take()).toEqual([]);
  });

  test('answers that nobody asked for teach nothing', () => {
    const { stack, hear } = makeHost();
    hear(arpFrame('reply', peerMac, neighbour, us));
    expect(stack.resolve(neighbour, 0)).toBeUndefined();
  });

  test.each([
    ['a group', Uint8Array.of(1, 0, 0x5e, 0, 0, 1)],
    ['everyone', broadcast],
    ['nobody', new Uint8Array(6)],
  ])('an address of %s is not learnt', (_name, mac) => {
    const { stack, hear } = makeHost();
    stack.resolve(neighbour, 0);
    hear(arpFrame('reply', mac, neighbour, us));
    expect([stack.resolve(neighbour, 0), stack.counters.malformed]).toEqual([undefined, 1]);
  });

  test('a flood of addresses to answer does not drive out the gateway', () => {
    const { stack, hear } = makeResolvedHost();
    const request = echo('request', 1, 1, new Uint8Array(8));
    for (let i = 0; i < 500; i++) hear(ipFrame(1, ip(`10.9.0.${(i % 200) + 20}`), us, request), 0);
    expect(stack.resolve(gateway, 1)).toEqual(peerMac);
  });
});

describe('packets', () => {
  test('have good headers, the destination’s MAC address, and the priority of their TOS', () => {
    const { link, stack } = makeResolvedHost();
    for (const [tos, priority] of [
      [0x10, 6],
      [0x00, 0],
      [0x08, 2],
      [0xb8, 4],
    ] as const) {
      const packet = stack.beginPacket(faraway, tos, 17, 100, 0);
      if (packet === undefined) throw new Error('no packet');
      stack.send(packet, 0);
      const [frame] = link.take();
      expect(frame?.priority).toBe(priority);
      expect(readFrame(frame?.bytes ?? new Uint8Array(34))).toMatchObject({
        destinationMac: peerMac,
        sourceMac: ourMac,
        tos,
        totalLength: 120,
        timeToLive: 64,
        protocol: 17,
        source: us,
        destination: faraway,
        headerChecksum: true,
      });
    }
    expect(link.packets.inUse).toBe(0);
  });

  test('each has another identification, also around 65,535', () => {
    const { stack } = makeHost();
    const seen = new Set(Array.from({ length: 65_536 }, () => stack.nextIdentification()));
    expect(seen.size).toBe(65_536);
  });

  test('without an address, a route or a packet to be had there is none', () => {
    const { link, stack } = makeHost(false);
    expect(stack.beginPacket(neighbour, 0, 17, 8, 0)).toBeUndefined();
    const resolved = makeResolvedHost();
    while (resolved.link.packets.take() !== undefined);
    expect(resolved.stack.beginPacket(neighbour, 0, 17, 8, 0)).toBeUndefined();
    expect(link.take()).toEqual([]);
  });
});

describe('echo', () => {
  test('a request to us is answered with its data and TOS', () => {
    const { link, hear } = makeResolvedHost();
    const data = Uint8Array.from({ length: 57 }, (_, i) => i);
    hear(ipFrame(1, neighbour, us, echo('request', 0x1234, 7, data), { tos: 0x10 }));
    const [frame] = link.take();
    const reply = readFrame(frame?.bytes ?? new Uint8Array(34));
    expect(reply).toMatchObject({ destination: neighbour, source: us, tos: 0x10, headerChecksum: true });
    expect(reply.payload).toEqual(echo('reply', 0x1234, 7, data));
    expect(frame?.priority).toBe(6);
  });

  test('whatever its data, the reply’s checksum is right', () => {
    const { link, hear } = makeResolvedHost();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(0xffff), fc.nat(0xffff), (data, id, sequence) => {
        hear(ipFrame(1, neighbour, us, echo('request', id, sequence, data)));
        const [frame] = link.take();
        expect(plainSum(readFrame(frame?.bytes ?? new Uint8Array(34)).payload)).toBe(0xffff);
      }),
    );
  });

  test('one to everyone is not answered, nor one that does not fit a packet', () => {
    const { link, stack, hear } = makeResolvedHost();
    const request = echo('request', 1, 1, new Uint8Array(8));
    hear(ipFrame(1, neighbour, ip('255.255.255.255'), request, { destinationMac: broadcast }));
    hear(ipFrame(1, neighbour, ip('10.9.0.255'), request, { destinationMac: broadcast }));
    link.mtuBytes = 576;
    hear(ipFrame(1, neighbour, us, echo('request', 1, 1, new Uint8Array(549))));
    expect(link.take()).toEqual([]);
    hear(ipFrame(1, neighbour, us, echo('request', 1, 1, new Uint8Array(548))));
    expect(link.take()).toHaveLength(1);
    stack.configure(undefined);
    hear(ipFrame(1, neighbour, us, request));
    expect(link.take()).toEqual([]);
  });

  test('a reply goes to the socket with its identifier', () => {
    const { link, stack, hear } = makeResolvedHost();
    const heard: number[] = [];
    const socket = new IcmpSocket(stack, 0x5153, { handleEchoReply: (sequence) => heard.push(sequence) });
    expect(socket.sendEcho(neighbour, 65_537, 0x10, 56, 9, 5)).toBe('queued');
    const [frame] = link.take();
    const sent = readFrame(frame?.bytes ?? new Uint8Array(34));
    expect([sent.payload.length, sent.tos, frame?.tag, frame?.priority]).toEqual([64, 0x10, 9, 6]);
    expect(sent.payload).toEqual(
      echo(
        'request',
        0x5153,
        1,
        Uint8Array.from({ length: 56 }, (_, i) => i),
      ),
    );
    hear(ipFrame(1, neighbour, us, echo('reply', 0x5153, 1, new Uint8Array(56))));
    hear(ipFrame(1, neighbour, us, echo('reply', 0x5154, 2, new Uint8Array(56))));
    expect([heard, stack.counters.noListener]).toEqual([[1], 1]);
    socket.close();
    hear(ipFrame(1, neighbour, us, echo('reply', 0x5153, 3, new Uint8Array(56))));
    expect(heard).toEqual([1]);
  });

  test('what becomes of a request: queued, unresolved or dropped', () => {
    const { link, stack } = makeResolvedHost();
    const socket = new IcmpSocket(stack, 1, { handleEchoReply: () => {} });
    expect(socket.sendEcho(ip('10.9.0.50'), 1, 0, 8, 0, 0)).toBe('unresolved');
    link.accepts = false;
    expect(socket.sendEcho(neighbour, 1, 0, 8, 0, 0)).toBe('dropped');
    expect(link.packets.inUse).toBe(0);
  });
});

describe('datagrams', () => {
  test('go to the handler of their port', () => {
    const { stack, hear } = makeResolvedHost();
    const heard: unknown[] = [];
    stack.setDatagramHandler(68, {
      handleDatagram: (bytes, offset, length, source, sourcePort, nowUs) =>
        heard.push([bytes.slice(offset, offset + length), source, sourcePort, nowUs]) > 0,
    });
    hear(udpFrame(gateway, 67, us, 68, Uint8Array.of(1, 2, 3)), 42);
    expect(heard).toEqual([[Uint8Array.of(1, 2, 3), gateway, 67, 42]]);
    hear(udpFrame(gateway, 67, us, 69, Uint8Array.of(1)));
    expect(stack.counters.noListener).toBe(1);
    stack.setDatagramHandler(68, undefined);
    hear(udpFrame(gateway, 67, us, 68, Uint8Array.of(1)));
    expect(heard).toHaveLength(1);
  });

  test('without an address those to any address are taken, if their frame is for us', () => {
    const { stack, hear } = makeHost(false);
    let heard = 0;
    stack.setDatagramHandler(68, {
      handleDatagram: () => {
        heard++;
        return true;
      },
    });
    hear(udpFrame(gateway, 67, ip('10.9.0.44'), 68, Uint8Array.of(1)));
    hear(udpFrame(gateway, 67, ip('255.255.255.255'), 68, Uint8Array.of(1), broadcast));
    hear(udpFrame(gateway, 67, ip('10.9.0.44'), 68, Uint8Array.of(1), peerMac));
    expect([heard, stack.counters.notForUs]).toEqual([2, 1]);
  });
});

describe('what leads nowhere is counted', () => {
  const good = udpFrame(gateway, 67, us, 68, Uint8Array.of(1, 2, 3, 4));
  function broken(change: (frame: Uint8Array) => void): Uint8Array {
    const frame = good.slice();
    change(frame);
    return frame;
  }
  /** Changes bytes of the IPv4 header and puts its checksum right. */
  function header(offset: number, ...values: readonly number[]): Uint8Array {
    return broken((frame) => {
      frame.set(values, 14 + offset);
      frame.set([0, 0], 24);
      const checksum = 0xffff - plainSum(frame.subarray(14, 34));
      frame.set([checksum >> 8, checksum & 0xff], 24);
    });
  }

  test.each([
    ['a frame of 13 bytes', good.subarray(0, 13), 'malformed'],
    ['a frame for another station', udpFrame(gateway, 67, us, 68, Uint8Array.of(1), peerMac), 'notForUs'],
    ['IPv6', broken((frame) => frame.set([0x86, 0xdd], 12)), 'notForUs'],
    ['half an IPv4 header', good.subarray(0, 30), 'malformed'],
    ['version 6 in IPv4', header(0, 0x65), 'malformed'],
    ['a header of four words', header(0, 0x44), 'malformed'],
    ['a total length beyond the frame', header(2, 0x01, 0x00), 'malformed'],
    ['a bad header checksum', broken((frame) => frame.set([9], 22)), 'badChecksum'],
    ['another destination', header(16, 10, 9, 0, 99), 'notForUs'],
    ['a first fragment', header(6, 0x20, 0x00), 'fragments'],
    ['a last fragment', header(6, 0x00, 0x10), 'fragments'],
    ['TCP', header(9, 6), 'noListener'],
    ['a bad UDP checksum', broken((frame) => frame.set([0xee], 45)), 'badChecksum'],
    ['a UDP length beyond the packet', broken((frame) => frame.set([0x00, 0xff], 38)), 'malformed'],
    ['a UDP length of seven', broken((frame) => frame.set([0x00, 0x07], 38)), 'malformed'],
    ['seven bytes of ICMP', ipFrame(1, gateway, us, new Uint8Array(7)), 'malformed'],
    ['a bad ICMP checksum', ipFrame(1, gateway, us, Uint8Array.of(8, 0, 1, 1, 0, 0, 0, 0)), 'badChecksum'],
    ['an ICMP error', ipFrame(1, gateway, us, Uint8Array.of(3, 3, 0xfc, 0xfc, 0, 0, 0, 0)), 'noListener'],
    ['half an ARP message', arpFrame('request', peerMac, gateway, us).subarray(0, 41), 'malformed'],
  ] as const)('%s: %s', (_name, frame, counter) => {
    const { link, stack, hear } = makeResolvedHost();
    stack.setDatagramHandler(68, {
      handleDatagram: () => {
        throw new Error('it was taken');
      },
    });
    hear(frame);
    const counted = Object.entries(stack.counters).filter(
      ([name, value]) => value > 0 && name !== 'unresolved',
    );
    expect(counted).toEqual([[counter, 1]]);
    expect(link.take()).toEqual([]);
  });

  test('padding behind a packet is no matter', () => {
    const { stack, hear } = makeResolvedHost();
    let heard = 0;
    stack.setDatagramHandler(68, {
      handleDatagram: (_bytes, _offset, length) => {
        heard = length;
        return true;
      },
    });
    hear(Uint8Array.from([...good, ...new Uint8Array(20)]));
    expect(heard).toBe(4);
  });

  test('anything at all: no throw, and no packet is kept', () => {
    const { link, stack, hear } = makeResolvedHost();
    stack.setEchoHandler(1, { handleEchoReply: () => {} });
    stack.setDatagramHandler(68, { handleDatagram: () => true });
    const mutated = fc
      .tuple(
        fc.constantFrom(
          good,
          arpFrame('request', peerMac, gateway, us),
          ipFrame(1, gateway, us, echo('request', 1, 1, new Uint8Array(20))),
        ),
        fc.array(fc.tuple(fc.nat(60), fc.nat(255)), { maxLength: 6 }),
        fc.nat(62),
      )
      .map(([frame, changes, length]) => {
        const bytes = frame.slice(0, length);
        for (const [offset, value] of changes) if (offset < bytes.length) bytes[offset] = value;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 100 })), (bytes) => {
        hear(bytes);
        expect(link.packets.inUse).toBe(0);
      }),
      { numRuns: 2000 },
    );
  });
});
