import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import {
  FrameHeaders,
  ipChecksumIsGood,
  segmentTcp,
  transportChecksumIsGood,
  writeChecksums,
} from '../../../src/sim/firmware/frame-offload.ts';
import { multicastHash, passesReceiveFilter } from '../../../src/sim/firmware/receive-filter.ts';
import { bytesOf } from '../wire/bytes-of.ts';

const all = { ip: true, tcp: true, udp: true };

/** The checksum of RFC 1071, word by word. */
function sumOf(bytes: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) + (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/** Ethernet and IP headers before a TCP or UDP message, without checksums. */
function packet(version: 4 | 6, protocol: 6 | 17, message: readonly number[]): Uint8Array {
  const { length } = message;
  const ip =
    version === 4
      ? [0x45, 0, (length + 20) >> 8, (length + 20) & 0xff, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0]
      : [0x60, 0, 0, 0, length >> 8, length & 0xff, protocol, 64];
  const addresses = Array.from({ length: version === 4 ? 8 : 32 }, (_, i) => 10 + i);
  const ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, ...(version === 4 ? [8, 0] : [0x86, 0xdd])];
  return Uint8Array.from([...ethernet, ...ip, ...addresses, ...message]);
}

function tcp(payload: readonly number[], flags = 0x18): readonly number[] {
  const ports = [0x12, 0x34, 0, 80];
  return [
    ...ports,
    0,
    0,
    0x10,
    0,
    0,
    0,
    0,
    9,
    0x80,
    flags,
    1,
    0,
    0,
    0,
    0,
    0,
    ...Array(12).fill(1),
    ...payload,
  ];
}

function udp(payload: readonly number[]): readonly number[] {
  const length = payload.length + 8;
  return [0x12, 0x34, 0, 80, length >> 8, length & 0xff, 0, 0, ...payload];
}

/** Whether TCP or UDP adds up, by the definition. */
function transportAddsUp(frame: Uint8Array, version: 4 | 6, protocol: number): boolean {
  const message = [...frame.subarray(version === 4 ? 34 : 54)];
  const addresses = version === 4 ? [...frame.subarray(26, 34)] : [...frame.subarray(22, 54)];
  const pseudo = [...addresses, 0, protocol, message.length >> 8, message.length & 0xff];
  return sumOf([...pseudo, ...message]) === 0xffff;
}

function random(length: number, seed = 1): number[] {
  const bytes = new Uint8Array(length);
  new Random(seed).fill(bytes);
  return [...bytes];
}

describe('checksums', () => {
  test.each([
    [4, 6],
    [4, 17],
    [6, 6],
    [6, 17],
  ] as const)('IPv%i, protocol %i: written so that they add up, and found good', (version, protocol) => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1400 }), fc.integer(), (length, seed) => {
        const payload = random(length, seed);
        const frame = packet(version, protocol, protocol === 6 ? tcp(payload) : udp(payload));
        // What a host leaves there: the sum of the pseudo header, or anything.
        frame[(version === 4 ? 34 : 54) + (protocol === 6 ? 16 : 6)] = 0x5a;
        const headers = new FrameHeaders();
        headers.parse(frame, frame.length);
        writeChecksums(frame, headers, all);
        expect(transportAddsUp(frame, version, protocol)).toBe(true);
        expect(transportChecksumIsGood(frame, headers)).toBe(true);
        expect(ipChecksumIsGood(frame, headers)).toBe(true);
        if (version === 4) expect(sumOf([...frame.subarray(14, 34)])).toBe(0xffff);
        // Any change is found.
        const at = frame.length - 1;
        frame[at] = (frame[at] ?? 0) ^ 1;
        expect(transportChecksumIsGood(frame, headers)).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  test('only those that are asked for', () => {
    const frame = packet(4, 17, udp([1, 2, 3]));
    const headers = new FrameHeaders();
    headers.parse(frame, frame.length);
    const before = frame.slice();
    writeChecksums(frame, headers, { ip: false, tcp: true, udp: false });
    expect(frame).toEqual(before);
  });

  test('a UDP checksum that comes out as zero is written as ones', () => {
    const frame = packet(4, 17, udp([0, 0]));
    const headers = new FrameHeaders();
    for (let word = 0; word < 0x10000; word++) {
      frame[42] = word >> 8;
      frame[43] = word & 0xff;
      headers.parse(frame, frame.length);
      if (word % 257 !== 0) continue;
      writeChecksums(frame, headers, all);
      expect(frame[40] === 0 && frame[41] === 0).toBe(false);
    }
    expect(transportAddsUp(frame, 4, 17)).toBe(true);
  });

  test.each([
    ['ARP', bytesOf('ffffffffffff 020000000001 0806 0001')],
    ['a fragment', Uint8Array.from(packet(4, 17, udp([1])).map((byte, i) => (i === 20 ? 0x20 : byte)))],
    [
      'a length beyond the frame',
      Uint8Array.from(packet(4, 17, udp([1])).map((byte, i) => (i === 16 ? 9 : byte))),
    ],
    ['another protocol', Uint8Array.from(packet(4, 17, udp([1])).map((byte, i) => (i === 23 ? 1 : byte)))],
    [
      'a TCP header that reaches too far',
      packet(
        4,
        6,
        tcp([]).map((byte, i) => (i === 12 ? 0xf0 : byte)),
      ),
    ],
  ])('%s: left as it is', (_name, frame) => {
    const headers = new FrameHeaders();
    headers.parse(frame, frame.length);
    expect(headers.protocol).toBeUndefined();
    const before = frame.slice(40);
    writeChecksums(frame, headers, all);
    expect(frame.slice(40)).toEqual(before);
    expect(transportChecksumIsGood(frame, headers)).toBe(true);
  });

  test('200,000 random frames: no throw', () => {
    const source = new Random(5);
    const headers = new FrameHeaders();
    const frame = new Uint8Array(200);
    for (let i = 0; i < 200_000; i++) {
      source.fill(frame.subarray(12, 60));
      frame[12] = source.chance(0.5) ? 0x08 : 0x86;
      frame[13] = source.chance(0.5) ? 0x00 : 0xdd;
      if (source.chance(0.8)) frame[14] = source.chance(0.5) ? 0x45 : 0x60;
      const length = source.integer(0, 200);
      headers.parse(frame, length);
      writeChecksums(frame, headers, all);
      const end = headers.transportOffset + headers.transportLength;
      if (headers.protocol !== undefined && end > length) throw new Error(`${end} of ${length}`);
    }
    expect(headers).toBeDefined();
  });
});

describe('a long TCP segment', () => {
  function cut(version: 4 | 6, payload: readonly number[], segmentBytes: number, flags = 0x99): Uint8Array[] {
    const frame = packet(version, 6, tcp(payload, flags));
    const headers = new FrameHeaders();
    headers.parse(frame, frame.length);
    const pieces: Uint8Array[] = [];
    const good = segmentTcp(frame, headers, segmentBytes, new Uint8Array(2048), (bytes, length) => {
      const piece = bytes.slice(0, length);
      const own = new FrameHeaders();
      own.parse(piece, length);
      writeChecksums(piece, own, all);
      pieces.push(piece);
    });
    expect(good).toBe(true);
    return pieces;
  }

  test.each([4, 6] as const)('IPv%i: pieces that go on from one another, and each adds up', (version) => {
    const payload = random(5000);
    const pieces = cut(version, payload, 1448);
    const ip = version === 4 ? 20 : 40;
    expect(pieces.map(({ length }) => length - 14 - ip - 32)).toEqual([1448, 1448, 1448, 656]);
    expect(pieces.flatMap((piece) => [...piece.subarray(14 + ip + 32)])).toEqual(payload);
    for (const [i, piece] of pieces.entries()) {
      const view = new DataView(piece.buffer);
      expect(transportAddsUp(piece, version, 6)).toBe(true);
      expect(view.getUint32(14 + ip + 4)).toBe(0x1000 + i * 1448);
      // FIN and PSH at the end, CWR at the beginning.
      expect(piece[14 + ip + 13]).toBe([0x90, 0x10, 0x10, 0x19][i]);
      if (version === 4) {
        expect(view.getUint16(16)).toBe(piece.length - 14);
        expect(view.getUint16(18)).toBe(0x1234 + i);
        expect(sumOf([...piece.subarray(14, 34)])).toBe(0xffff);
      } else {
        expect(view.getUint16(18)).toBe(piece.length - 54);
      }
    }
  });

  test('one that needs no cutting is one piece; so is one without payload', () => {
    expect(cut(4, random(100), 1448)).toHaveLength(1);
    expect(cut(4, [], 1448)).toHaveLength(1);
  });

  test('what is no TCP, and pieces that no frame can hold, are refused', () => {
    const headers = new FrameHeaders();
    const datagram = packet(4, 17, udp(random(3000)));
    headers.parse(datagram, datagram.length);
    expect(segmentTcp(datagram, headers, 1448, new Uint8Array(2048), () => {})).toBe(false);
    const segment = packet(4, 6, tcp(random(3000)));
    headers.parse(segment, segment.length);
    expect(segmentTcp(segment, headers, 4000, new Uint8Array(2048), () => {})).toBe(false);
    expect(segmentTcp(segment, headers, 0, new Uint8Array(2048), () => {})).toBe(false);
  });
});

describe('the receive filter', () => {
  /** The CRC of Ethernet with its highest bit first, bit by bit. */
  function hashOf(address: Uint8Array): number {
    let crc = 0xffff_ffff;
    for (const byte of address) {
      for (let bit = 0; bit < 8; bit++) {
        const feedback = ((crc >>> 31) ^ (byte >>> bit)) & 1;
        crc = (crc << 1) >>> 0;
        if (feedback === 1) crc = (crc ^ 0x04c1_1db7) >>> 0;
      }
    }
    return crc >>> 26;
  }

  test('the hash of a group address is that of the bit-by-bit definition', () => {
    const source = new Random(9);
    const address = new Uint8Array(6);
    for (let i = 0; i < 1000; i++) {
      source.fill(address);
      expect(multicastHash(address)).toBe(hashOf(address));
    }
  });

  const own = bytesOf('020000000001');
  const group = bytesOf('3333ff000001');
  const withGroup = new Uint8Array(8);
  const hash = multicastHash(group);
  withGroup[hash >> 3] = 1 << (hash & 7);
  const none = new Uint8Array(8);
  test.each([
    ['its own address', 0x00, own, none, true],
    ['somebody else’s', 0x1a, bytesOf('020000000002'), withGroup, false],
    ['somebody else’s, promiscuous', 0x01, bytesOf('020000000002'), none, true],
    ['everybody’s', 0x08, bytesOf('ffffffffffff'), none, true],
    ['everybody’s, not wanted', 0x00, bytesOf('ffffffffffff'), none, false],
    ['a group in the filter', 0x10, group, withGroup, true],
    ['a group in the filter, which is off', 0x00, group, withGroup, false],
    ['a group that is not in the filter', 0x10, group, none, false],
    ['any group', 0x02, group, none, true],
  ])('%s', (_name, control, destination, filter, passes) => {
    expect(passesReceiveFilter(control, destination, own, filter)).toBe(passes);
  });
});
