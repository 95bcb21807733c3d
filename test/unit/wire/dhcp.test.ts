import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  dhcpMessageTypes,
  encodeDhcpMessage,
  parseDhcpMessage,
  type DhcpMessage,
} from '../../../src/wire/dhcp.ts';
import { parseIpv4Address } from '../../../src/wire/ipv4-address.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const clientMac = bytesOf('00 0b 82 01 fc 42');

function address(text: string): number {
  return parseIpv4Address(text) ?? -1;
}

/** A BOOTP header with Ethernet's kind of addresses, and what is to be put in it. */
function message(
  head: { readonly operation?: number; readonly at?: Readonly<Record<number, string>> },
  options: string,
): Uint8Array {
  const optionBytes = bytesOf(options);
  const bytes = new Uint8Array(240 + optionBytes.length);
  bytes.set([head.operation ?? 2, 1, 6, 0]);
  bytes.set(bytesOf('00 00 3d 1d'), 4);
  bytes.set(clientMac, 28);
  bytes.set(bytesOf('63 82 53 63'), 236);
  for (const [offset, hex] of Object.entries(head.at ?? {})) bytes.set(bytesOf(hex), Number(offset));
  bytes.set(optionBytes, 240);
  return bytes;
}

const common = {
  transactionId: 0x3d1d,
  secondsElapsed: 0,
  broadcast: false,
  clientAddress: 0,
  yourAddress: 0,
  serverAddress: 0,
  relayAddress: 0,
  clientMac,
} as const;

describe('messages as they are seen on networks', () => {
  test('a discover', () => {
    const bytes = message(
      { operation: 1 },
      '35 01 01 | 3d 07 01 00 0b 82 01 fc 42 | 32 04 00 00 00 00 | 37 04 01 03 06 2a | ff 00 00 00 00 00 00 00',
    );
    expect(parseDhcpMessage(bytes)).toEqual({
      ...common,
      type: 'discover',
      operation: 'request',
      clientIdentifier: bytesOf('01 00 0b 82 01 fc 42'),
      requestedAddress: 0,
      parameterRequestList: [1, 3, 6, 42],
    });
  });

  test('an offer, in the middle of a packet', () => {
    const bytes = message(
      { at: { 8: '00 05', 10: '80 00', 16: 'c0 a8 00 0a', 20: 'c0 a8 00 01' } },
      '35 01 02 | 01 04 ff ff ff 00 | 3a 04 00 00 07 08 | 3b 04 00 00 0c 4e | 33 04 00 00 0e 10 | 36 04 c0 a8 00 01 |' +
        '03 04 c0 a8 00 01 | 06 08 08 08 08 08 01 01 01 01 | 1a 02 05 dc | 0c 05 6d 6f 64 65 6d | ff',
    );
    expect(parseDhcpMessage(embedded(bytes, 42), 42, bytes.length)).toEqual({
      ...common,
      type: 'offer',
      operation: 'reply',
      secondsElapsed: 5,
      broadcast: true,
      yourAddress: address('192.168.0.10'),
      serverAddress: address('192.168.0.1'),
      subnetMask: address('255.255.255.0'),
      renewalTimeSeconds: 1800,
      rebindingTimeSeconds: 3150,
      leaseTimeSeconds: 3600,
      serverIdentifier: address('192.168.0.1'),
      routers: [address('192.168.0.1')],
      dnsServers: [address('8.8.8.8'), address('1.1.1.1')],
      interfaceMtu: 1500,
      hostName: 'modem',
    });
  });

  test('options in the fields for file and server name, parts joined in the order of the RFC', () => {
    const bytes = message(
      // File: router, then the rest of the host name. Server name: lease time.
      { at: { 44: '33 04 00 00 00 3c ff', 108: '03 04 0a 00 00 01 0c 02 65 6d ff' } },
      '35 01 05 | 34 01 03 | 0c 03 6d 6f 64 | ff',
    );
    expect(parseDhcpMessage(bytes)).toMatchObject({
      type: 'ack',
      leaseTimeSeconds: 60,
      routers: [address('10.0.0.1')],
      hostName: 'modem',
    });
  });

  test('without overload these fields are text, whatever is in it', () => {
    const bytes = message({ at: { 108: '33 ff' } }, '35 01 05 | ff');
    expect(parseDhcpMessage(bytes)).toEqual({ ...common, type: 'ack', operation: 'reply' });
  });
});

describe('tolerates', () => {
  test.each([
    ['a missing end', '35 01 06'],
    ['padding between options', '00 00 35 01 06 00 ff'],
    ['what stands behind the end', '35 01 06 ff 35 09'],
    ['unknown options', '35 01 06 fc 03 01 02 03 ff'],
    [
      'options of a wrong length, as if not sent',
      '01 03 ff ff ff 03 05 01 02 03 04 05 1a 01 05 33 00 35 01 06 ff',
    ],
    ['a host name of nothing but a zero', '0c 01 00 35 01 06 ff'],
  ])('%s', (_name, options) => {
    expect(parseDhcpMessage(message({}, options))).toEqual({ ...common, type: 'nak', operation: 'reply' });
  });
});

describe('refuses', () => {
  const good = message({}, '35 01 06 ff');
  const changed = (offset: number, value: number): Uint8Array => {
    const bytes = good.slice();
    bytes[offset] = value;
    return bytes;
  };
  test.each([
    ['nothing', new Uint8Array(0)],
    ['a message without options', good.subarray(0, 239)],
    ['another operation', changed(0, 3)],
    ['another hardware', changed(1, 6)],
    ['longer hardware addresses', changed(2, 16)],
    ['another cookie', changed(239, 0)],
    ['no message type', message({}, '01 04 ff ff ff 00 ff')],
    ['message type 0', message({}, '35 01 00 ff')],
    ['message type 9', message({}, '35 01 09 ff')],
    ['a message type of two bytes', message({}, '35 02 01 01 ff')],
    ['two message types', message({}, '35 01 01 35 01 02 ff')],
    ['an option without a length', message({}, '35 01 06 01')],
    ['an option that runs over the end', message({}, '35 01 06 01 04 ff ff ff')],
    [
      'an overloaded field with such an option',
      message({ at: { 232: '01 04 ff ff' } }, '35 01 06 34 01 01 ff'),
    ],
  ])('%s', (_name, bytes) => {
    expect(parseDhcpMessage(bytes)).toBeUndefined();
  });

  test('a range outside of the buffer', () => {
    expect(parseDhcpMessage(good, 1, good.length)).toBeUndefined();
  });
});

const uint32 = fc.nat(0xffff_ffff);
const addresses = fc.array(uint32, { minLength: 1, maxLength: 70 });
const arbitraryMessage: fc.Arbitrary<DhcpMessage> = fc.record(
  {
    type: fc.constantFrom(...dhcpMessageTypes),
    operation: fc.constantFrom('request', 'reply'),
    transactionId: uint32,
    secondsElapsed: fc.nat(0xffff),
    broadcast: fc.boolean(),
    clientAddress: uint32,
    yourAddress: uint32,
    serverAddress: uint32,
    relayAddress: uint32,
    clientMac: fc.uint8Array({ minLength: 6, maxLength: 6 }),
    subnetMask: uint32,
    routers: addresses,
    dnsServers: addresses,
    hostName: fc
      .array(fc.integer({ min: 1, max: 255 }), { minLength: 1, maxLength: 300 })
      .map((codes) => String.fromCharCode(...codes)),
    interfaceMtu: fc.nat(0xffff),
    requestedAddress: uint32,
    leaseTimeSeconds: uint32,
    serverIdentifier: uint32,
    parameterRequestList: fc.array(fc.nat(255), { minLength: 1, maxLength: 20 }),
    maxMessageSize: fc.nat(0xffff),
    renewalTimeSeconds: uint32,
    rebindingTimeSeconds: uint32,
    clientIdentifier: fc.uint8Array({ minLength: 1, maxLength: 20 }),
  },
  {
    requiredKeys: [
      'type',
      'operation',
      'transactionId',
      'secondsElapsed',
      'broadcast',
      'clientAddress',
      'yourAddress',
      'serverAddress',
      'relayAddress',
      'clientMac',
    ],
  },
);

test('what is encoded is parsed again, and never shorter than BOOTP', () => {
  fc.assert(
    fc.property(arbitraryMessage, (original) => {
      const bytes = encodeDhcpMessage(original);
      expect(bytes.length).toBeGreaterThanOrEqual(300);
      expect(parseDhcpMessage(bytes)).toEqual(original);
    }),
  );
});
