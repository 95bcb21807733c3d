import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { DhcpClient, type DhcpLease } from '../../../src/ip/dhcp-client.ts';
import { IpStack } from '../../../src/ip/ip-stack.ts';
import { type DhcpMessage, encodeDhcpMessage, parseDhcpMessage } from '../../../src/wire/dhcp.ts';
import { arpFrame, ip, LinkDouble, ourMac, peerMac, readArp, readFrame, udpFrame } from './link-double.ts';

const server = ip('10.9.0.1');
const leased = ip('10.9.0.2');
const everyone = ip('255.255.255.255');
const second = 1_000_000;
const broadcastMac = Uint8Array.of(255, 255, 255, 255, 255, 255);

interface Asked {
  readonly message: DhcpMessage;
  readonly source: number;
  readonly destination: number;
  readonly atUs: number;
}

/** Reads a message of the client: from port 68 to 67, with good checksums, or it is none. */
function readAsked(bytes: Uint8Array, nowUs: number): Asked {
  const { payload, source, destination, headerChecksum, udpChecksum } = readFrame(bytes);
  const ports = new DataView(payload.buffer, payload.byteOffset);
  const message = parseDhcpMessage(payload, 8);
  const isGood = headerChecksum && udpChecksum && ports.getUint16(0) === 68 && ports.getUint16(2) === 67;
  if (!isGood || message === undefined) throw new Error('the client sent something malformed');
  return { message, source, destination, atUs: nowUs };
}

/** A client, and a network that the test is. */
class Bench {
  nowUs = 0;
  readonly link = new LinkDouble();
  readonly stack = new IpStack(this.link);
  readonly leases: DhcpLease[] = [];
  lost = 0;
  noServer = 0;
  readonly client = new DhcpClient(this.stack, new Random(1), {
    handleLease: (lease) => this.leases.push(lease),
    handleLeaseLost: () => this.lost++,
    handleNoServer: () => this.noServer++,
  });
  /** What the client asked; ARP is answered by itself. */
  readonly asked: Asked[] = [];

  start(): this {
    this.client.start(this.nowUs);
    this.#collect();
    return this;
  }

  #collect(): void {
    for (const { bytes, nowUs } of this.link.take()) {
      const arp = readArp(bytes);
      if (arp?.operation === 1) {
        const reply = arpFrame('reply', peerMac, arp.targetIp, arp.senderIp);
        this.stack.handleFrame(reply, 0, reply.length, this.nowUs);
      }
      if (arp !== undefined) continue;
      this.asked.push(readAsked(bytes, nowUs));
    }
  }

  poll(): void {
    for (let rounds = 0; this.client.pollAtUs() <= this.nowUs; rounds++) {
      if (rounds === 100) throw new Error(`the client keeps itself busy at ${this.nowUs} us`);
      this.client.poll(this.nowUs);
      this.#collect();
    }
  }

  advance(us: number): void {
    const endUs = this.nowUs + us;
    this.poll();
    while (this.client.pollAtUs() <= endUs) {
      this.nowUs = this.client.pollAtUs();
      this.poll();
    }
    this.nowUs = endUs;
  }

  get lastAsked(): Asked {
    const last = this.asked.at(-1);
    if (last === undefined) throw new Error('nothing was asked');
    return last;
  }

  /** A reply to what was asked last, with these fields of its own. */
  reply(type: DhcpMessage['type'], more: Partial<DhcpMessage> = {}): void {
    const message: DhcpMessage = {
      type,
      operation: 'reply',
      transactionId: this.lastAsked.message.transactionId,
      secondsElapsed: 0,
      broadcast: true,
      clientAddress: 0,
      yourAddress: type === 'nak' ? 0 : leased,
      serverAddress: 0,
      relayAddress: 0,
      clientMac: ourMac,
      serverIdentifier: server,
      ...(type === 'nak'
        ? {}
        : {
            subnetMask: ip('255.255.255.0'),
            routers: [server],
            dnsServers: [server],
            leaseTimeSeconds: 3600,
          }),
      ...more,
    };
    const frame = udpFrame(server, 67, everyone, 68, encodeDhcpMessage(message), broadcastMac);
    this.stack.handleFrame(frame, 0, frame.length, this.nowUs);
    this.#collect();
  }

  /** To a lease. */
  bind(more: Partial<DhcpMessage> = {}): this {
    this.start();
    this.reply('offer');
    this.reply('ack', more);
    if (this.client.state !== 'bound') throw new Error('it is not bound');
    this.asked.length = 0;
    return this;
  }
}

describe('to a lease', () => {
  test('discover, offer, request, ack: the address is set', () => {
    const bench = new Bench().start();
    expect(bench.asked).toMatchObject([
      {
        source: 0,
        destination: everyone,
        message: {
          type: 'discover',
          operation: 'request',
          broadcast: true,
          clientAddress: 0,
          clientMac: ourMac,
          clientIdentifier: Uint8Array.of(1, ...ourMac),
        },
      },
    ]);
    expect(bench.lastAsked.message.serverIdentifier).toBeUndefined();
    bench.reply('offer');
    expect(bench.client.state).toBe('requesting');
    expect(bench.lastAsked).toMatchObject({
      source: 0,
      destination: everyone,
      message: { type: 'request', clientAddress: 0, requestedAddress: leased, serverIdentifier: server },
    });
    expect(bench.leases).toEqual([]);
    bench.reply('ack');
    expect(bench.leases).toEqual([
      {
        address: leased,
        prefixLength: 24,
        gateway: server,
        server,
        dnsServers: [server],
        leaseSeconds: 3600,
      },
    ]);
    expect([bench.stack.configuration, bench.client.lease]).toEqual([bench.leases[0], bench.leases[0]]);
    expect(bench.asked).toHaveLength(2);
  });

  test('all of one attempt has one transaction number, and the seconds count', () => {
    const bench = new Bench().start();
    bench.advance(3 * second);
    bench.reply('offer');
    const ids = new Set(bench.asked.map(({ message }) => message.transactionId));
    expect(ids.size).toBe(1);
    expect(bench.lastAsked.message.secondsElapsed).toBe(3);
  });

  // Options of the ack, and what comes of them.
  test.each<[string, Partial<DhcpMessage>, Partial<DhcpLease>]>([
    ['no mask: /24', { subnetMask: undefined as never }, { prefixLength: 24 }],
    ['a mask with a hole: /24', { subnetMask: 0xff00ff00 }, { prefixLength: 24 }],
    ['a modem’s /32', { subnetMask: 0xffff_ffff }, { prefixLength: 32, gateway: server }],
    ['no router', { routers: undefined as never }, { gateway: undefined }],
    ['a router that is none', { routers: [0, ip('10.9.0.254')] }, { gateway: ip('10.9.0.254') }],
    ['no server identifier: that of the offer', { serverIdentifier: undefined as never }, { server }],
    ['no lease time: an hour', { leaseTimeSeconds: undefined as never }, { leaseSeconds: 3600 }],
    ['a lease of no time', { leaseTimeSeconds: 0 }, { leaseSeconds: 10 }],
  ])('%s', (_name, options, expected) => {
    const bench = new Bench().start();
    bench.reply('offer');
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const removed = Object.keys(options).filter((key) => !(key in given));
    const plain = {
      subnetMask: ip('255.255.255.0'),
      routers: [server],
      serverIdentifier: server,
      leaseTimeSeconds: 3600,
    };
    bench.reply('ack', {
      ...plain,
      ...given,
      ...Object.fromEntries(removed.map((key) => [key, undefined])),
    } as never);
    expect(bench.leases[0]).toMatchObject(expected);
  });
});

describe('nobody answers', () => {
  test('it asks after 1, 2, 4, 8, 16 and again 16 seconds, a tenth more at most', () => {
    const bench = new Bench().start();
    bench.advance(70 * second);
    const gaps = bench.asked.map(({ atUs }, i) => atUs - (bench.asked[i - 1]?.atUs ?? 0)).slice(1);
    [1, 2, 4, 8, 16, 16].forEach((seconds, i) => {
      expect(gaps[i]).toBeGreaterThanOrEqual(seconds * second);
      expect(gaps[i]).toBeLessThanOrEqual(seconds * 1.1 * second);
    });
    expect(bench.asked.every(({ message }) => message.type === 'discover')).toBe(true);
  });

  test('after four messages that is said, once; it goes on, and a server that comes late is taken', () => {
    const bench = new Bench().start();
    bench.advance(6 * second);
    expect(bench.noServer).toBe(0);
    bench.advance(600 * second);
    expect(bench.noServer).toBe(1);
    bench.reply('offer');
    bench.reply('ack');
    expect(bench.leases).toHaveLength(1);
  });

  test('an offer that was lost: the next one will do', () => {
    const bench = new Bench().start();
    bench.advance(2 * second);
    bench.reply('offer');
    bench.reply('ack');
    expect(bench.client.state).toBe('bound');
  });

  test('an ack that was lost: it requests again', () => {
    const bench = new Bench().start();
    bench.reply('offer');
    bench.advance(1.2 * second);
    expect(bench.asked.map(({ message }) => message.type)).toEqual(['discover', 'request', 'request']);
    bench.reply('ack');
    expect(bench.client.state).toBe('bound');
  });

  test('a server that offered and then fell silent: all begins anew, in another transaction', () => {
    const bench = new Bench().start();
    bench.reply('offer');
    const { transactionId } = bench.lastAsked.message;
    bench.advance(20 * second);
    expect(bench.lastAsked.message.type).toBe('discover');
    expect(bench.lastAsked.message.transactionId).not.toBe(transactionId);
    bench.reply('ack', { transactionId });
    expect(bench.leases).toEqual([]);
    bench.reply('offer');
    bench.reply('ack');
    expect(bench.leases).toHaveLength(1);
  });
});

describe('refused', () => {
  test('it begins anew, after a second and in another transaction', () => {
    const bench = new Bench().start();
    bench.reply('offer');
    const { transactionId } = bench.lastAsked.message;
    bench.reply('nak');
    bench.advance(second - 1);
    expect(bench.asked).toHaveLength(2);
    bench.advance(1);
    expect(bench.asked).toHaveLength(3);
    expect(bench.lastAsked.message.type).toBe('discover');
    expect(bench.lastAsked.message.transactionId).not.toBe(transactionId);
    expect([bench.lost, bench.client.state]).toEqual([0, 'selecting']);
  });

  test('a server that refuses whatever it offers is not asked more than once a second', () => {
    const bench = new Bench().start();
    for (let i = 0; i < 600; i++) {
      const { type } = bench.lastAsked.message;
      if (type === 'discover' && bench.client.state === 'selecting') bench.reply('offer');
      else if (bench.client.state === 'requesting') bench.reply('nak');
      bench.advance(0.1 * second);
    }
    expect(bench.asked.length).toBeLessThanOrEqual(2 * 61);
  });
});

describe('renewal', () => {
  test('at half of the time it asks its server, and its server alone', () => {
    const bench = new Bench().bind();
    bench.advance(1800 * second - 1);
    expect([bench.asked, bench.client.state]).toEqual([[], 'bound']);
    // The server's MAC address is asked for first; the request follows a second later.
    bench.advance(2 * second);
    expect(bench.client.state).toBe('renewing');
    expect(bench.lastAsked).toMatchObject({
      source: leased,
      destination: server,
      message: { type: 'request', clientAddress: leased, broadcast: false },
    });
    const { requestedAddress, serverIdentifier } = bench.lastAsked.message;
    expect([requestedAddress, serverIdentifier]).toEqual([undefined, undefined]);
    bench.reply('ack');
    expect([bench.client.state, bench.leases.length, bench.lost]).toEqual(['bound', 1, 0]);
    expect(bench.stack.configuration?.address).toBe(leased);
    bench.asked.length = 0;
    bench.advance(1799 * second);
    expect(bench.asked).toEqual([]);
    bench.advance(3 * second);
    expect(bench.client.state).toBe('renewing');
  });

  test('at the times that the server names', () => {
    const bench = new Bench().bind({
      renewalTimeSeconds: 100,
      rebindingTimeSeconds: 200,
      leaseTimeSeconds: 300,
    });
    bench.advance(99 * second);
    expect(bench.client.state).toBe('bound');
    bench.advance(second);
    expect(bench.client.state).toBe('renewing');
    bench.advance(100 * second);
    expect(bench.client.state).toBe('rebinding');
    bench.advance(100 * second);
    expect([bench.client.state, bench.lost]).toEqual(['selecting', 1]);
  });

  test.each([
    ['at once', { renewalTimeSeconds: 0 }],
    ['after the lease', { renewalTimeSeconds: 4000 }],
    ['rebinding before renewal', { renewalTimeSeconds: 100, rebindingTimeSeconds: 50 }],
    ['rebinding after the lease', { rebindingTimeSeconds: 3601 }],
  ])('times that make no sense (%s): half and seven eighths', (_name, times) => {
    const bench = new Bench().bind(times);
    bench.advance(1799 * second);
    expect(bench.client.state).toBe('bound');
    bench.advance(second);
    expect(bench.client.state).toBe('renewing');
    bench.advance(1350 * second);
    expect(bench.client.state).toBe('rebinding');
  });

  test('nobody answers it: at seven eighths it asks anyone, and then the lease is lost', () => {
    const bench = new Bench().bind();
    bench.advance(3150 * second);
    expect([bench.client.state, bench.lost, bench.noServer]).toEqual(['rebinding', 0, 0]);
    expect(bench.lastAsked).toMatchObject({
      source: leased,
      destination: everyone,
      message: { type: 'request', clientAddress: leased },
    });
    expect(bench.stack.configuration?.address).toBe(leased);
    bench.advance(450 * second);
    expect([bench.client.state, bench.lost, bench.stack.configuration, bench.client.lease]).toEqual([
      'selecting',
      1,
      undefined,
      undefined,
    ]);
    expect(bench.lastAsked.message).toMatchObject({ type: 'discover', clientAddress: 0 });
    bench.reply('offer');
    bench.reply('ack');
    expect(bench.leases).toHaveLength(2);
  });

  test('another server may answer the rebinding', () => {
    const bench = new Bench().bind();
    bench.advance(3150 * second);
    bench.reply('ack', { serverIdentifier: ip('10.9.0.9') });
    expect([bench.client.state, bench.client.lease?.server, bench.leases.length]).toEqual([
      'bound',
      ip('10.9.0.9'),
      1,
    ]);
  });

  test('refused: the address is given up at once', () => {
    const bench = new Bench().bind();
    bench.advance(1802 * second);
    bench.reply('nak');
    expect([bench.lost, bench.stack.configuration, bench.client.state]).toEqual([1, undefined, 'selecting']);
  });

  test.each([
    ['another address', { yourAddress: ip('10.9.0.77') }],
    ['another route', { routers: [ip('10.9.0.254')] }],
    ['another mask', { subnetMask: ip('255.255.0.0') }],
  ])('%s in it is taken over and told', (_name, more) => {
    const bench = new Bench().bind();
    bench.advance(1802 * second);
    bench.reply('ack', more);
    expect(bench.leases).toHaveLength(2);
    expect(bench.stack.configuration).toBe(bench.leases[1]);
  });

  test('a lease for ever is never renewed', () => {
    const bench = new Bench().bind({ leaseTimeSeconds: 0xffff_ffff });
    expect(bench.client.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('after a long pause of ours it does what is due now, once', () => {
    const bench = new Bench().bind();
    bench.nowUs = 3200 * second;
    bench.poll();
    expect([bench.client.state, bench.asked.length]).toEqual(['rebinding', 1]);
    bench.nowUs = 9000 * second;
    bench.poll();
    expect([bench.client.state, bench.lost]).toEqual(['selecting', 1]);
  });

  test('a server that leases for no time at all is not asked more often than every few seconds', () => {
    const bench = new Bench().bind({ leaseTimeSeconds: 0, renewalTimeSeconds: 0, rebindingTimeSeconds: 0 });
    for (let i = 0; i < 600; i++) {
      if (bench.client.state !== 'bound' && bench.asked.length > 0) {
        if (bench.client.state === 'selecting') bench.reply('offer');
        bench.reply('ack', { leaseTimeSeconds: 0, renewalTimeSeconds: 0, rebindingTimeSeconds: 0 });
      }
      bench.advance(0.1 * second);
    }
    expect(bench.asked.length).toBeLessThanOrEqual(60 / 4);
  });
});

describe('the end', () => {
  test('a lease is given back, and nothing more is asked or taken', () => {
    const bench = new Bench().bind();
    bench.advance(1802 * second);
    bench.reply('ack');
    bench.client.stop(bench.nowUs);
    const released = bench.link.take().map(({ bytes }) => readFrame(bytes));
    expect(released).toHaveLength(1);
    expect(released[0]).toMatchObject({ source: leased, destination: server });
    expect(parseDhcpMessage(released[0]?.payload ?? new Uint8Array(0), 8)).toMatchObject({
      type: 'release',
      clientAddress: leased,
      serverIdentifier: server,
    });
    expect([bench.client.state, bench.stack.configuration, bench.client.pollAtUs()]).toEqual([
      'idle',
      undefined,
      Number.POSITIVE_INFINITY,
    ]);
    bench.reply('offer');
    bench.reply('ack');
    expect([bench.leases.length, bench.link.take().length]).toEqual([1, 0]);
  });

  test('without a lease there is nothing to give back', () => {
    const bench = new Bench().start();
    bench.client.stop(bench.nowUs);
    expect(bench.link.take()).toEqual([]);
  });

  test('started again it begins anew', () => {
    const bench = new Bench().bind();
    bench.start();
    expect([bench.client.state, bench.stack.configuration, bench.lastAsked.message.type]).toEqual([
      'selecting',
      undefined,
      'discover',
    ]);
  });
});

describe('what is not for it, or not in its turn', () => {
  const states: readonly (readonly [string, () => Bench])[] = [
    ['selecting', () => new Bench().start()],
    [
      'requesting',
      () => {
        const bench = new Bench().start();
        bench.reply('offer');
        return bench;
      },
    ],
    [
      'renewing',
      () => {
        const bench = new Bench().bind();
        bench.advance(1802 * second);
        return bench;
      },
    ],
    [
      'rebinding',
      () => {
        const bench = new Bench().bind();
        bench.advance(3150 * second);
        return bench;
      },
    ],
  ];

  describe.each(states)('while %s', (state, make) => {
    test.each<[string, DhcpMessage['type'], Partial<DhcpMessage>]>([
      ['another transaction', 'ack', { transactionId: 1 }],
      ['another transaction', 'nak', { transactionId: 1 }],
      ['another client', 'ack', { clientMac: peerMac }],
      ['another client', 'nak', { clientMac: peerMac }],
      ['a request', 'ack', { operation: 'request' }],
      ['an address of zeros', 'ack', { yourAddress: 0 }],
      ['an address of ones', 'ack', { yourAddress: everyone }],
      ['a group’s address', 'ack', { yourAddress: ip('224.0.0.1') }],
      ['the loopback address', 'ack', { yourAddress: ip('127.0.0.1') }],
      ['an inform', 'inform', {}],
    ])('%s (%s)', (_name, type, more) => {
      const bench = make();
      const before = [bench.leases.length, bench.lost, bench.asked.length];
      bench.reply(type, more);
      expect([bench.client.state, [bench.leases.length, bench.lost, bench.asked.length]]).toEqual([
        state,
        before,
      ]);
    });
  });

  test.each<[string, Partial<DhcpMessage>]>([
    ['without a server identifier', { serverIdentifier: undefined as never }],
    ['of no address', { yourAddress: 0 }],
    ['of everyone’s address', { yourAddress: everyone }],
    ['of a group', { yourAddress: ip('239.1.2.3') }],
  ])('an offer %s', (_name, more) => {
    const bench = new Bench().start();
    bench.reply('offer', more);
    expect(bench.client.state).toBe('selecting');
  });

  test('an ack before there was a request, and a refusal', () => {
    const bench = new Bench().start();
    bench.reply('ack');
    bench.reply('nak');
    expect([bench.client.state, bench.leases.length, bench.asked.length]).toEqual(['selecting', 0, 1]);
  });

  test('a second offer, when one is taken', () => {
    const bench = new Bench().start();
    bench.reply('offer');
    bench.reply('offer', { yourAddress: ip('10.9.0.66'), serverIdentifier: ip('10.9.0.6') });
    bench.reply('ack');
    expect(bench.client.lease?.address).toBe(leased);
  });

  test('anything at all while bound: a late refusal does not take the address away', () => {
    const bench = new Bench().start();
    bench.reply('offer');
    bench.reply('ack');
    for (const type of ['offer', 'ack', 'nak'] as const) bench.reply(type, { yourAddress: ip('10.9.0.66') });
    expect([bench.client.state, bench.stack.configuration?.address, bench.lost]).toEqual([
      'bound',
      leased,
      0,
    ]);
  });

  test('bytes of any kind: no throw, no lease', () => {
    const bench = new Bench().start();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const frame = udpFrame(server, 67, everyone, 68, bytes, broadcastMac);
        bench.stack.handleFrame(frame, 0, frame.length, 0);
        expect(bench.client.state).toBe('selecting');
      }),
      { numRuns: 500 },
    );
  });
});
