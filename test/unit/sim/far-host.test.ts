import { describe, expect, test } from 'vitest';
import { FarHost } from '../../../src/sim/far-host.ts';
import { type Frame, FramePool } from '../../../src/sim/frame.ts';
import {
  arpOperation,
  arpReply,
  arpRequest,
  arpSenderIp,
  arpTargetIp,
  checkArp,
  copyArpSenderMac,
  copyArpTargetMac,
  writeArp,
} from '../../../src/wire/arp.ts';
import { type DhcpMessage, encodeDhcpMessage, parseDhcpMessage } from '../../../src/wire/dhcp.ts';
import {
  ethernetType,
  etherTypeArp,
  etherTypeIpv4,
  etherTypeIpv6,
  writeEthernet,
} from '../../../src/wire/ethernet.ts';
import {
  icmpChecksumIsGood,
  icmpEchoReply,
  icmpEchoRequest,
  icmpIdentifier,
  icmpSequence,
  icmpType,
  writeIcmpEcho,
} from '../../../src/wire/icmp.ts';
import {
  checkIpv4,
  ipv4ChecksumIsGood,
  ipv4Destination,
  ipv4Protocol,
  ipv4Source,
  ipv4TotalLength,
  writeIpv4,
} from '../../../src/wire/ipv4.ts';
import { parseIpv4Address } from '../../../src/wire/ipv4-address.ts';
import { broadcastMacAddress, zeroMacAddress } from '../../../src/wire/mac-address.ts';
import {
  checkUdp,
  udpChecksumIsGood,
  udpDestinationPort,
  udpSourcePort,
  writeUdp,
  writeUdpWithoutChecksum,
} from '../../../src/wire/udp.ts';
import { pattern } from './bare-device.ts';

const hostMac = Uint8Array.of(2, 0, 0, 0, 0, 1);
const clientMac = Uint8Array.of(2, 0, 0, 0, 0, 2);
const otherMac = Uint8Array.of(2, 0, 0, 0, 0, 3);

function ip(text: string): number {
  const address = parseIpv4Address(text);
  if (address === undefined) throw new Error(text);
  return address;
}

const hostIp = ip('10.64.0.1');
const clientIp = ip('10.64.0.2');

class Setup {
  readonly pool = new FramePool();
  readonly replies: Uint8Array[] = [];
  readonly host = new FarHost({
    macAddress: hostMac,
    address: hostIp,
    prefixLength: 24,
    clientAddress: clientIp,
    pool: this.pool,
    linkBitsPerSecond: () => 10e6,
    send: (frame: Frame) => {
      this.replies.push(frame.bytes.slice(0, frame.length));
      this.pool.give(frame);
    },
  });

  /** Hands a frame over and returns the answer to it, if any. */
  handle(bytes: Uint8Array): Uint8Array | undefined {
    const frame = this.pool.take();
    frame.bytes.set(bytes);
    frame.length = bytes.length;
    const before = this.replies.length;
    this.host.handleFrame(frame, 1000);
    if (this.pool.inUse !== 0) throw new Error('a frame has leaked');
    if (this.replies.length > before + 1) throw new Error('more than one answer');
    return this.replies[before];
  }
}

function ethernet(type: number, payload: Uint8Array, destination: Uint8Array = hostMac): Uint8Array {
  const bytes = new Uint8Array(14 + payload.length);
  writeEthernet(bytes, 0, destination, clientMac, type);
  bytes.set(payload, 14);
  return bytes;
}

function ipv4(
  protocol: number,
  destination: number,
  payload: Uint8Array,
  destinationMac: Uint8Array = hostMac,
  source = clientIp,
): Uint8Array {
  const bytes = new Uint8Array(20 + payload.length);
  bytes.set(payload, 20);
  writeIpv4(bytes, 0, 0, payload.length, 77, true, 3, protocol, source, destination);
  return ethernet(etherTypeIpv4, bytes, destinationMac);
}

function udp(
  port: number,
  destination: number,
  payload: Uint8Array,
  destinationMac: Uint8Array = hostMac,
  source = clientIp,
): Uint8Array {
  const bytes = new Uint8Array(8 + payload.length);
  bytes.set(payload, 8);
  writeUdp(bytes, 0, port === 67 ? 68 : 5555, port, payload.length, source, destination);
  return ipv4(17, destination, bytes, destinationMac, source);
}

function echo(destination: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(8 + payload.length);
  bytes.set(payload, 8);
  writeIcmpEcho(bytes, 0, icmpEchoRequest, 321, 54, payload.length);
  return ipv4(1, destination, bytes);
}

describe('ARP', () => {
  function ask(target: string): Uint8Array | undefined {
    const bytes = new Uint8Array(28);
    writeArp(bytes, 0, arpRequest, clientMac, clientIp, zeroMacAddress, ip(target));
    return new Setup().handle(ethernet(etherTypeArp, bytes, broadcastMacAddress));
  }

  test.each(['10.64.0.1', '10.64.0.77', '10.64.0.254'])('%s is answered', (target) => {
    const reply = ask(target);
    if (reply === undefined) throw new Error('no answer');
    expect(reply.subarray(0, 6)).toEqual(clientMac);
    expect(checkArp(reply, 14, reply.length - 14)).toBe(28);
    const mac = new Uint8Array(6);
    copyArpSenderMac(reply, 14, mac);
    expect(mac).toEqual(hostMac);
    copyArpTargetMac(reply, 14, mac);
    expect(mac).toEqual(clientMac);
    expect([arpOperation(reply, 14), arpSenderIp(reply, 14), arpTargetIp(reply, 14)]).toEqual([
      arpReply,
      ip(target),
      clientIp,
    ]);
  });

  test.each(['10.64.0.2', '10.64.1.1', '192.168.1.1'])('%s is not', (target) => {
    expect(ask(target)).toBeUndefined();
  });

  test('replies are ignored', () => {
    const bytes = new Uint8Array(28);
    writeArp(bytes, 0, arpReply, clientMac, clientIp, hostMac, hostIp);
    const setup = new Setup();
    expect(setup.handle(ethernet(etherTypeArp, bytes))).toBeUndefined();
    expect(setup.host.counters.ignored).toBe(1);
  });
});

describe('ICMP echo', () => {
  test.each(['10.64.0.1', '10.64.0.9', '8.8.8.8'])('%s answers with the same data', (target) => {
    const payload = pattern(1000);
    const reply = new Setup().handle(echo(ip(target), payload));
    if (reply === undefined) throw new Error('no answer');
    expect(checkIpv4(reply, 14, reply.length - 14)).toBe(20);
    expect(ipv4ChecksumIsGood(reply, 14)).toBe(true);
    expect([ipv4Source(reply, 14), ipv4Destination(reply, 14), reply[22]]).toEqual([
      ip(target),
      clientIp,
      64,
    ]);
    expect(icmpChecksumIsGood(reply, 34, ipv4TotalLength(reply, 14) - 20)).toBe(true);
    expect([icmpType(reply, 34), icmpIdentifier(reply, 34), icmpSequence(reply, 34)]).toEqual([
      icmpEchoReply,
      321,
      54,
    ]);
    expect(reply.subarray(42)).toEqual(payload);
  });

  test.each(['10.64.0.2', '10.64.0.255', '255.255.255.255', '224.0.0.1'])('%s does not', (target) => {
    expect(new Setup().handle(echo(ip(target), pattern(8)))).toBeUndefined();
  });

  test('a broken checksum is counted', () => {
    const frame = echo(hostIp, pattern(8));
    frame[45] = (frame[45] ?? 0) ^ 1;
    const setup = new Setup();
    expect(setup.handle(frame)).toBeUndefined();
    expect(setup.host.counters.malformed).toBe(1);
  });
});

describe('UDP', () => {
  test('port 9 swallows and counts, and never answers', () => {
    const setup = new Setup();
    for (let i = 0; i < 10; i++) expect(setup.handle(udp(9, hostIp, pattern(100 + i)))).toBeUndefined();
    expect(setup.host.counters.udpSunkDatagrams).toBe(10);
    expect(setup.host.counters.udpSunkBytes).toBe(1045);
    expect(setup.host.counters.udpFirstAtUs).toBe(1000);
  });

  test('so does any other without a service, a checksum of zero included', () => {
    const setup = new Setup();
    const payload = new Uint8Array(8 + 5);
    writeUdpWithoutChecksum(payload, 0, 1, 50_000, 5);
    expect(setup.handle(ipv4(17, hostIp, payload))).toBeUndefined();
    expect(setup.host.counters.udpSunkBytes).toBe(5);
  });

  test('port 7 sends back what came', () => {
    const payload = pattern(1472);
    const reply = new Setup().handle(udp(7, hostIp, payload));
    if (reply === undefined) throw new Error('no answer');
    expect(reply.subarray(0, 12)).toEqual(Uint8Array.from([...clientMac, ...hostMac]));
    expect(checkUdp(reply, 34, reply.length - 34)).toBe(8);
    expect([udpSourcePort(reply, 34), udpDestinationPort(reply, 34)]).toEqual([7, 5555]);
    expect(udpChecksumIsGood(reply, 34, hostIp, clientIp)).toBe(true);
    expect(ipv4ChecksumIsGood(reply, 14)).toBe(true);
    expect(reply.subarray(42)).toEqual(payload);
  });

  test('a broken datagram is counted, not sunk', () => {
    const setup = new Setup();
    const frame = udp(9, hostIp, pattern(100));
    frame[60] = (frame[60] ?? 0) ^ 0x40;
    setup.handle(frame);
    expect(setup.host.counters).toMatchObject({ udpSunkDatagrams: 0, malformed: 1 });
  });
});

describe('frames that are no one’s', () => {
  test.each([
    ['too short', new Uint8Array(13), 'malformed'],
    ['to another station', ethernet(etherTypeIpv4, pattern(50), otherMac), 'notForUs'],
    ['IPv6', ethernet(etherTypeIpv6, pattern(50)), 'ignored'],
    ['TCP', ipv4(6, hostIp, pattern(40)), 'ignored'],
    ['no IPv4 after all', ethernet(etherTypeIpv4, pattern(50)), 'malformed'],
  ] as const)('%s', (_name, frame, counter) => {
    const setup = new Setup();
    expect(setup.handle(frame)).toBeUndefined();
    expect(setup.host.counters[counter]).toBe(1);
    expect(setup.host.counters.frames).toBe(1);
  });

  test('a fragment', () => {
    const bytes = pattern(48);
    writeIpv4(bytes, 0, 0, 28, 1, false, 64, 17, clientIp, hostIp);
    bytes[6] = 0x20;
    bytes.set([0, 0], 10);
    let sum = 0;
    for (let i = 0; i < 20; i += 2) sum += ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
    sum = (sum & 0xffff) + (sum >>> 16);
    bytes.set([(~sum >>> 8) & 0xff, ~sum & 0xff], 10);
    const setup = new Setup();
    expect(setup.handle(ethernet(etherTypeIpv4, bytes))).toBeUndefined();
    expect(setup.host.counters.ignored).toBe(1);
  });
});

describe('DHCP', () => {
  function ask(
    setup: Setup,
    message: Partial<DhcpMessage> & Pick<DhcpMessage, 'type'>,
  ): { frame: Uint8Array; message: DhcpMessage } | undefined {
    const payload = encodeDhcpMessage({
      operation: 'request',
      transactionId: 0x12345678,
      secondsElapsed: 0,
      broadcast: false,
      clientAddress: 0,
      yourAddress: 0,
      serverAddress: 0,
      relayAddress: 0,
      clientMac,
      ...message,
    });
    const unicast = (message.clientAddress ?? 0) !== 0;
    const frame = setup.handle(
      udp(
        67,
        unicast ? hostIp : 0xffff_ffff,
        payload,
        unicast ? hostMac : broadcastMacAddress,
        message.clientAddress ?? 0,
      ),
    );
    if (frame === undefined) return undefined;
    expect(ethernetType(frame, 0)).toBe(etherTypeIpv4);
    expect([
      ipv4Protocol(frame, 14),
      ipv4Source(frame, 14),
      udpSourcePort(frame, 34),
      udpDestinationPort(frame, 34),
    ]).toEqual([17, hostIp, 67, 68]);
    expect(ipv4ChecksumIsGood(frame, 14)).toBe(true);
    expect(udpChecksumIsGood(frame, 34, hostIp, ipv4Destination(frame, 14))).toBe(true);
    const answer = parseDhcpMessage(frame, 42, frame.length - 42);
    if (answer === undefined) throw new Error('not a DHCP message');
    expect([answer.operation, answer.transactionId, answer.clientMac]).toEqual([
      'reply',
      0x12345678,
      clientMac,
    ]);
    return { frame, message: answer };
  }

  const lease = {
    yourAddress: clientIp,
    subnetMask: ip('255.255.255.0'),
    routers: [hostIp],
    dnsServers: [hostIp],
    leaseTimeSeconds: 3600,
    serverIdentifier: hostIp,
  };

  test('discover, offer, request, ack', () => {
    const setup = new Setup();
    const offer = ask(setup, { type: 'discover' });
    expect(offer?.message).toMatchObject({ type: 'offer', ...lease });
    expect(offer?.frame.subarray(0, 6)).toEqual(broadcastMacAddress);
    const ack = ask(setup, { type: 'request', requestedAddress: clientIp, serverIdentifier: hostIp });
    expect(ack?.message).toMatchObject({
      type: 'ack',
      ...lease,
      renewalTimeSeconds: 1800,
      rebindingTimeSeconds: 3150,
    });
  });

  test('a renewal is answered to the address itself', () => {
    const ack = ask(new Setup(), { type: 'request', clientAddress: clientIp });
    expect(ack?.message).toMatchObject({ type: 'ack', ...lease });
    expect(ack?.frame.subarray(0, 6)).toEqual(clientMac);
    expect(ipv4Destination(ack?.frame ?? new Uint8Array(0), 14)).toBe(clientIp);
  });

  test('another address is refused', () => {
    const nak = ask(new Setup(), { type: 'request', requestedAddress: ip('192.168.1.5') });
    expect(nak?.message.type).toBe('nak');
    expect(nak?.message.yourAddress).toBe(0);
    expect(nak?.frame.subarray(0, 6)).toEqual(broadcastMacAddress);
  });

  test('a request to another server is none of ours', () => {
    expect(
      ask(new Setup(), { type: 'request', requestedAddress: clientIp, serverIdentifier: ip('10.64.0.3') }),
    ).toBeUndefined();
  });

  test('information without an address', () => {
    const ack = ask(new Setup(), { type: 'inform', clientAddress: clientIp });
    expect(ack?.message).toMatchObject({ type: 'ack', yourAddress: 0, routers: [hostIp] });
    expect(ack?.message.leaseTimeSeconds).toBeUndefined();
  });

  test('rubbish on port 67 is taken and not answered', () => {
    const setup = new Setup();
    expect(setup.handle(udp(67, hostIp, pattern(300)))).toBeUndefined();
    expect(setup.host.counters.dhcpMessages).toBe(1);
  });
});
