/**
 * Random and mutated inputs, seeded: no parser throws, runs on, or hands out a byte that is not in its input. 280,000
 * inputs in all; a failure names the seed of its run.
 */
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import {
  arpOperation,
  arpRequest,
  arpSenderIp,
  arpTargetIp,
  checkArp,
  writeArp,
} from '../../../src/wire/arp.ts';
import { encodeCdcFunctional, parseCdcFunctional } from '../../../src/wire/cdc-functional.ts';
import { parseNotification } from '../../../src/wire/cdc-notification.ts';
import { encodeDhcpMessage, parseDhcpMessage } from '../../../src/wire/dhcp.ts';
import {
  checkEthernet,
  ethernetHeaderLength,
  ethernetType,
  etherTypeArp,
  etherTypeIpv4,
  writeEthernet,
} from '../../../src/wire/ethernet.ts';
import {
  checkIcmp,
  icmpChecksumIsGood,
  icmpDestinationUnreachable,
  icmpEchoRequest,
  icmpPortUnreachable,
  icmpQuotedPacketOffset,
  writeIcmpEcho,
  writeIcmpError,
} from '../../../src/wire/icmp.ts';
import {
  checkIpv4,
  checkIpv4Header,
  ipProtocolIcmp,
  ipProtocolUdp,
  ipv4ChecksumIsGood,
  ipv4Destination,
  ipv4HeaderLength,
  ipv4Protocol,
  ipv4Source,
  ipv4TotalLength,
  writeIpv4,
} from '../../../src/wire/ipv4.ts';
import { broadcastMacAddress } from '../../../src/wire/mac-address.ts';
import { ncmSignatures, parseNtbParameters, type NtbFormat } from '../../../src/wire/ntb.ts';
import { NtbReader, type NtbReadResult, type NtbSink } from '../../../src/wire/ntb-reader.ts';
import { NtbWriter } from '../../../src/wire/ntb-writer.ts';
import { checkUdp, udpChecksumIsGood, udpLength, writeUdp } from '../../../src/wire/udp.ts';
import { encodeBosDescriptor, parseBosDescriptor } from '../../../src/wire/usb-bos.ts';
import {
  encodeConfigurationDescriptor,
  parseConfigurationDescriptor,
  parseDeviceDescriptor,
  type ConfigurationDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import { parseLanguageList, parseStringDescriptor } from '../../../src/wire/usb-string.ts';
import { bytesOf } from './bytes-of.ts';
import { mutated, randomBytes } from './mutation.ts';

/** Calls `check` with random bytes in a quarter of the runs, else with a mutation of one of `originals`. */
function fuzz(
  seed: number,
  runs: number,
  maxLength: number,
  originals: readonly Uint8Array[],
  check: (bytes: Uint8Array, random: Random) => void,
): void {
  const random = new Random(seed);
  for (let run = 0; run < runs; run++) {
    const original = originals[random.integer(0, originals.length - 1)] ?? new Uint8Array(0);
    const bytes = random.chance(0.25) ? randomBytes(random, maxLength) : mutated(random, original);
    try {
      check(bytes, random);
    } catch (error) {
      throw new Error(`seed ${seed}, run ${run}: ${bytes.join(',')}`, { cause: error });
    }
  }
}

describe.each<NtbFormat>(['ntb16', 'ntb32'])('%s reader', (format) => {
  const maxNtbBytes = 2048;

  function goodNtb(datagrams: number, ndpToEnd: boolean, signatures: readonly number[]): Uint8Array {
    const buffer = new Uint8Array(maxNtbBytes);
    const writer = new NtbWriter({
      format,
      ndpModulus: 4,
      modulus: 4,
      remainder: 2,
      maxDatagrams: 8,
      ndpToEnd,
    });
    writer.begin(buffer, maxNtbBytes, 1);
    for (let i = 0; i < datagrams; i++) {
      const signature = signatures[i % signatures.length] ?? 0;
      expect(writer.tryAppend(signature, new Uint8Array(60 + i).fill(i), 0, 60 + i)).toBe(true);
    }
    return buffer.slice(0, writer.finish());
  }

  test('60,000 NTBs', () => {
    const ncm0 = ncmSignatures[format];
    const originals = [
      goodNtb(1, false, [ncm0]),
      goodNtb(8, false, [ncm0]),
      goodNtb(8, true, [ncm0]),
      goodNtb(6, false, [ncm0, 1, 2]),
    ];
    let start = 0;
    let end = 0;
    let handedOut = 0;
    const sink: NtbSink = {
      handleDatagram(_bytes, offset, length) {
        if (!(offset > start && length >= 14 && length <= maxNtbBytes && offset + length <= end)) {
          throw new Error(`${length} bytes at ${offset}, not within ${start} to ${end}`);
        }
        handedOut++;
      },
    };
    const reader = new NtbReader({ format, maxNtbBytes, sink });
    const results: Partial<Record<NtbReadResult, number>> = {};
    fuzz(16, 60_000, 400, originals, (bytes, random) => {
      start = random.integer(0, 9);
      end = start + bytes.length;
      const buffer = new Uint8Array(end + random.integer(0, 9)).fill(0x11);
      buffer.set(bytes, start);
      const result = reader.read(buffer, start, bytes.length);
      results[result] = (results[result] ?? 0) + 1;
    });
    // The inputs are worth something only if they get far and into every corner.
    expect(handedOut).toBeGreaterThan(50_000);
    expect(handedOut).toBe(reader.datagrams);
    expect(reader.badDatagrams).toBeGreaterThan(500);
    expect(reader.skippedNdps).toBeGreaterThan(500);
    expect(Object.keys(results).toSorted()).toEqual([
      'bad-block-length',
      'bad-ndp',
      'bad-signature',
      'ok',
      'short',
      'too-many-ndps',
    ]);
    expect(results.ok).toBeGreaterThan(10_000);
  });
});

describe('descriptors', () => {
  const device = bytesOf('12 01 20 03 00 00 00 09 da 0b 53 81 23 31 01 02 06 02');
  const configurations = [
    bytesOf(`09 02 62 00 02 02 00 a0 0e | 09 04 00 00 01 02 06 00 05 | 05 24 00 10 01 | 05 24 06 00 01 |
      0d 24 0f 03 00 00 00 00 ea 05 00 00 00 | 07 05 83 03 10 00 0b | 06 30 00 00 10 00 | 09 04 01 00 00 0a 00 00 00 |
      09 04 01 01 02 0a 00 00 04 | 07 05 81 02 00 04 00 | 06 30 03 00 00 00 | 07 05 02 02 00 04 00 | 06 30 03 00 00 00`),
    bytesOf(`09 02 48 00 02 01 04 a0 fa | 08 0b 00 02 02 0e 00 00 | 09 04 00 00 01 02 0e 00 00 | 05 24 00 10 01 |
      05 24 06 00 01 | 07 05 81 03 40 00 09 | 09 04 01 00 00 0a 00 02 00 | 09 04 01 01 01 0a 00 02 00 |
      07 05 8e 02 00 02 00 | 04 24 02 02`),
  ];
  const bos = bytesOf('05 0f 16 00 02 | 07 10 02 06 00 00 00 | 0a 10 03 02 0e 00 02 0a ff 07');
  const string = bytesOf('0a 03 41 00 42 00 43 00 44 00');

  function again(value: ConfigurationDescriptor): ConfigurationDescriptor {
    const endpoints = value.interfaces.flatMap((one) => one.altSettings.flatMap((alt) => alt.endpoints));
    const superSpeed = endpoints.some((one) => one.companion !== undefined);
    const result = parseConfigurationDescriptor(encodeConfigurationDescriptor(value, { superSpeed }));
    if (!result.ok) throw new Error(result.problem);
    return result.value;
  }

  test('30,000 configurations: what is accepted can be encoded, and comes back', () => {
    let accepted = 0;
    fuzz(17, 30_000, 200, configurations, (bytes) => {
      const result = parseConfigurationDescriptor(bytes);
      if (!result.ok) {
        expect(result.offset).toBeGreaterThanOrEqual(0);
        expect(result.offset).toBeLessThanOrEqual(bytes.length);
        return;
      }
      accepted++;
      // The first time, endpoints without a companion may get one among others that have one.
      const encoded = again(result.value);
      expect(again(encoded)).toEqual(encoded);
      expect(encoded.interfaces.length).toBe(result.value.interfaces.length);
      expect(encoded.extra).toEqual(result.value.extra);
    });
    expect(accepted).toBeGreaterThan(3000);
  });

  test('10,000 device descriptors and BOS descriptors each', () => {
    let accepted = 0;
    fuzz(18, 10_000, 40, [device], (bytes) => {
      const result = parseDeviceDescriptor(bytes);
      if (result.ok) accepted++;
      else expect(result.offset).toBeLessThanOrEqual(bytes.length);
    });
    expect(accepted).toBeGreaterThan(1000);

    accepted = 0;
    fuzz(19, 10_000, 60, [bos], (bytes) => {
      const result = parseBosDescriptor(bytes);
      if (!result.ok) {
        expect(result.offset).toBeLessThanOrEqual(bytes.length);
        return;
      }
      accepted++;
      const dataLength = result.value.others.reduce((sum, other) => sum + other.data.length, 0);
      expect(dataLength).toBeLessThan(bytes.length);
      // A second one of a kind is among the others, and stays the second one.
      const isMixed = result.value.others.some((other) => other.type === 2 || other.type === 3);
      if (!isMixed) expect(parseBosDescriptor(encodeBosDescriptor(result.value))).toEqual(result);
    });
    expect(accepted).toBeGreaterThan(500);
  });

  test('10,000 strings, notifications and NTB parameters each', () => {
    fuzz(20, 10_000, 64, [string], (bytes, random) => {
      const text = parseStringDescriptor(bytes);
      expect(text === undefined).toBe(parseLanguageList(bytes) === undefined);
      expect(2 * (text?.length ?? 0)).toBeLessThanOrEqual(Math.max(0, bytes.length - 2));
      const offset = random.integer(0, 4);
      const length = random.integer(0, 20);
      if (parseNotification(bytes, offset, length) !== undefined) {
        expect(offset + length).toBeLessThanOrEqual(bytes.length);
      }
      expect(parseNtbParameters(bytes) === undefined).toBe(bytes.length < 28);
    });
  });

  test('20,000 collections of CDC functional descriptors', () => {
    const extras = [
      bytesOf(
        '05 24 00 10 01 | 05 24 06 00 01 | 0c 24 1b 00 01 00 10 20 80 00 08 20 | 08 24 1c 00 01 40 dc 05',
      ),
      bytesOf(
        '05 24 00 10 01 | 05 24 01 00 01 | 04 24 02 02 | 05 24 06 00 01 | 0d 24 0f 03 00 00 00 00 ea 05 00 00 00',
      ),
      bytesOf('06 24 1a 00 01 13 | 15 24 12 00 01 00112233445566778899aabbccddeeff | 06 24 13 00 01 02'),
    ];
    let kinds = 0;
    fuzz(21, 20_000, 80, extras, (bytes) => {
      const functional = parseCdcFunctional(bytes);
      const encoded = encodeCdcFunctional(functional);
      expect(encoded.length).toBeLessThanOrEqual(bytes.length);
      expect(parseCdcFunctional(encoded)).toEqual({ ...functional, duplicates: 0, malformed: 0 });
      kinds += Object.keys(functional).length - 2;
    });
    expect(kinds).toBeGreaterThan(20_000);
  });
});

test('20,000 DHCP messages: what is accepted can be encoded, and comes back', () => {
  const ack = encodeDhcpMessage({
    type: 'ack',
    operation: 'reply',
    transactionId: 0x12345678,
    secondsElapsed: 1,
    broadcast: false,
    clientAddress: 0,
    yourAddress: 0x0a090002,
    serverAddress: 0x0a090001,
    relayAddress: 0,
    clientMac: Uint8Array.of(2, 0, 0, 0, 0, 1),
    subnetMask: 0xffffff00,
    routers: [0x0a090001],
    dnsServers: [0x08080808, 0x01010101],
    hostName: 'modem',
    interfaceMtu: 1430,
    leaseTimeSeconds: 3600,
    serverIdentifier: 0x0a090001,
    renewalTimeSeconds: 1800,
    rebindingTimeSeconds: 3150,
    clientIdentifier: Uint8Array.of(1, 2, 0, 0, 0, 0, 1),
  });
  const overloaded = ack.slice();
  overloaded.set(bytesOf('34 01 03 35 01 05 ff'), 240);
  overloaded.set(bytesOf('0c 03 6d 6f 64 ff'), 108);
  overloaded.set(bytesOf('33 04 00 00 0e 10 ff'), 44);
  let accepted = 0;
  fuzz(22, 20_000, 400, [ack, overloaded], (bytes, random) => {
    // Most of a message is fixed fields of zeros: aim at the options as well.
    if (random.chance(0.5) && bytes.length > 250) {
      bytes[random.integer(240, bytes.length - 1)] = random.integer(0, 255);
    }
    const message = parseDhcpMessage(bytes);
    if (message === undefined) return;
    accepted++;
    expect(parseDhcpMessage(encodeDhcpMessage(message))).toEqual(message);
  });
  expect(accepted).toBeGreaterThan(2000);
});

test('60,000 frames of Ethernet, ARP, IPv4, ICMP and UDP', () => {
  const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);

  function frameOf(type: number, write: (bytes: Uint8Array, offset: number) => number): Uint8Array {
    const bytes = new Uint8Array(200);
    writeEthernet(bytes, 0, broadcastMacAddress, mac, type);
    return bytes.slice(0, ethernetHeaderLength + write(bytes, ethernetHeaderLength));
  }

  const originals = [
    frameOf(etherTypeArp, (bytes, offset) => writeArp(bytes, offset, arpRequest, mac, 1, mac, 2)),
    frameOf(etherTypeIpv4, (bytes, offset) => {
      writeIpv4(bytes, offset, 0, 40, 1, true, 64, ipProtocolIcmp, 1, 2);
      writeIcmpEcho(bytes, offset + 20, icmpEchoRequest, 1, 2, 32);
      return 60;
    }),
    frameOf(etherTypeIpv4, (bytes, offset) => {
      writeIpv4(bytes, offset, 0, 40, 1, true, 64, ipProtocolUdp, 1, 2);
      writeUdp(bytes, offset + 20, 3, 4, 32, 1, 2);
      return 60;
    }),
    frameOf(etherTypeIpv4, (bytes, offset) => {
      const quoted = new Uint8Array(28);
      writeIpv4(quoted, 0, 0, 80, 1, true, 1, ipProtocolUdp, 1, 2);
      writeIpv4(bytes, offset, 0, 36, 1, true, 64, ipProtocolIcmp, 2, 1);
      return (
        20 +
        writeIcmpError(bytes, offset + 20, icmpDestinationUnreachable, icmpPortUnreachable, 0, quoted, 0, 28)
      );
    }),
  ];

  const reached = { arp: 0, ipv4: 0, icmp: 0, quoted: 0, udp: 0, goodUdp: 0 };
  fuzz(23, 60_000, 120, originals, (bytes, random) => {
    // The frame's end is not always that of the buffer.
    const length = random.chance(0.8) ? bytes.length : random.integer(0, bytes.length);
    if (checkEthernet(bytes, 0, length) < 0) {
      expect(length).toBeLessThan(ethernetHeaderLength);
      return;
    }
    const offset = ethernetHeaderLength;
    const rest = length - offset;
    if (ethernetType(bytes, 0) === etherTypeArp && checkArp(bytes, offset, rest) > 0) {
      reached.arp++;
      expect(rest).toBeGreaterThanOrEqual(28);
      for (const value of [
        arpOperation(bytes, offset),
        arpSenderIp(bytes, offset),
        arpTargetIp(bytes, offset),
      ]) {
        expect(value >= 0 && value <= 0xffff_ffff).toBe(true);
      }
    }

    const headerLength = checkIpv4(bytes, offset, rest);
    if (headerLength < 0) return;
    reached.ipv4++;
    const totalLength = ipv4TotalLength(bytes, offset);
    expect(headerLength).toBe(ipv4HeaderLength(bytes, offset));
    expect(headerLength >= 20 && headerLength <= totalLength && totalLength <= rest).toBe(true);
    ipv4ChecksumIsGood(bytes, offset);
    const payload = offset + headerLength;
    const payloadLength = totalLength - headerLength;

    if (checkIcmp(bytes, payload, payloadLength) > 0 && ipv4Protocol(bytes, offset) === ipProtocolIcmp) {
      reached.icmp++;
      icmpChecksumIsGood(bytes, payload, payloadLength);
      const quoted = icmpQuotedPacketOffset(bytes, payload, payloadLength);
      if (quoted >= 0) {
        reached.quoted++;
        const quotedLength = payload + payloadLength - quoted;
        const quotedHeader = checkIpv4Header(bytes, quoted, quotedLength);
        expect(quotedHeader >= 20 && quotedHeader + 8 <= quotedLength).toBe(true);
      }
    }
    if (checkUdp(bytes, payload, payloadLength) > 0 && ipv4Protocol(bytes, offset) === ipProtocolUdp) {
      reached.udp++;
      expect(udpLength(bytes, payload)).toBeLessThanOrEqual(payloadLength);
      if (udpChecksumIsGood(bytes, payload, ipv4Source(bytes, offset), ipv4Destination(bytes, offset))) {
        reached.goodUdp++;
      }
    }
  });
  for (const [what, count] of Object.entries(reached)) expect(count, what).toBeGreaterThan(200);
});
