import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { Segmenter } from '../../../src/netif/segmenter.ts';
import { Packet, packetCapacityBytes } from '../../../src/usbnet/packet.ts';
import { mutated, randomBytes } from '../wire/mutation.ts';
import { cutBy, headerBytes, type LongSegment, longSegment, plainSum, readFrame } from './long-segment.ts';

const segmenter = new Segmenter();
const packet = new Packet(packetCapacityBytes);
const flags = { fin: 0x01, psh: 0x08, ack: 0x10, ece: 0x40, cwr: 0x80 } as const;

/** What comes out of what was read; undefined: it is refused. */
function cut(read: Uint8Array): Uint8Array[] | undefined {
  const frames = cutBy(segmenter, read);
  if (frames === undefined) expect(segmenter.isEmpty).toBe(true);
  return frames;
}

const example: LongSegment = {
  protocol: 'tcp',
  version: 4,
  vlan: false,
  networkOptions: 0,
  tcpOptions: 12,
  flags: flags.ack | flags.psh,
  sequence: 0xffff_fc00,
  identification: 0xfffe,
  payload: Uint8Array.from({ length: 5000 }, (_, index) => index * 31),
  gsoSize: 1448,
};

const segments: fc.Arbitrary<LongSegment> = fc
  .record({
    protocol: fc.constantFrom('tcp' as const, 'udp' as const),
    version: fc.constantFrom(4 as const, 6 as const),
    vlan: fc.boolean(),
    optionWords: fc.nat(3),
    tcpOptions: fc.nat(10).map((words) => words * 4),
    flags: fc.nat(255),
    sequence: fc.nat(0xffff_ffff),
    identification: fc.nat(0xffff),
    payload: fc.uint8Array({ minLength: 1, maxLength: 9000 }),
    gsoSize: fc.integer({ min: 1, max: 1448 }),
  })
  .map(({ optionWords, ...rest }) => ({
    ...rest,
    networkOptions: optionWords * (rest.version === 4 ? 4 : 8),
  }));

describe('a long segment', () => {
  test('is cut into frames that are the same again when joined, each with its own checksums', () => {
    fc.assert(
      fc.property(segments, (segment) => {
        const frames = cut(longSegment(segment));
        const read = frames?.map(readFrame) ?? [];
        expect(read).toHaveLength(Math.ceil(segment.payload.length / segment.gsoSize));
        let at = 0;
        for (const [index, { payload, isGood, ...frame }] of read.entries()) {
          const isLast = index + 1 === read.length;
          expect(isGood).toBe(true);
          expect(payload).toEqual(segment.payload.subarray(at, at + segment.gsoSize));
          if (segment.version === 4) {
            expect(frame.identification).toBe((segment.identification + index) & 0xffff);
          }
          if (segment.protocol === 'tcp') {
            expect(frame.sequence).toBe((segment.sequence + at) % 2 ** 32);
            const onlyLast = isLast ? 0 : flags.fin | flags.psh;
            const onlyFirst = index === 0 ? 0 : flags.cwr;
            expect(frame.flags).toBe(segment.flags & ~(onlyLast | onlyFirst));
          }
          at += payload.length;
        }
        expect(at).toBe(segment.payload.length);
      }),
      { numRuns: 500 },
    );
  });

  test('of 64 KB: as long as IP allows', () => {
    const payload = Uint8Array.from({ length: 65_535 - 32 }, (_, index) => index ^ (index >> 8));
    const longest = cut(longSegment({ ...example, version: 6, payload, gsoSize: 1428 }))?.map(readFrame);
    expect(longest?.every(({ isGood }) => isGood)).toBe(true);
    expect(longest).toHaveLength(46);
  });

  test('can be taken out bit by bit, and the next one leaves nothing of it', () => {
    const first = cut(longSegment(example));
    const again = cut(longSegment({ ...example, payload: example.payload.slice(0, 1449) }));
    expect(first).toHaveLength(4);
    expect(again?.map(({ length }) => length)).toEqual([1514, 67]);
    expect(cut(longSegment(example))).toEqual(first);
  });

  test('with "congestion window reduced" marked in the header, too', () => {
    const read = longSegment({ ...example, flags: flags.ack | flags.cwr });
    read[1] = 0x81;
    expect(cut(read)?.map((frame) => readFrame(frame).flags)).toEqual([
      flags.ack | flags.cwr,
      flags.ack,
      flags.ack,
      flags.ack,
    ]);
  });
});

describe('a single frame', () => {
  const frameOf = (protocol: 'tcp' | 'udp', length: number): Uint8Array => {
    const read = longSegment({ ...example, protocol, payload: example.payload.slice(0, length) });
    // GSO: none.
    read.set([0, 0, 0, 0, 0], 1);
    return read;
  };

  test.each([1, 2, 3, 100, 1448])('of %d bytes gets its checksum', (length) => {
    for (const protocol of ['tcp', 'udp'] as const) {
      const [frame] = cut(frameOf(protocol, length)) ?? [];
      const sum = plainSum(frame?.subarray(34) ?? new Uint8Array(0));
      // IPv4's own checksum is the sender's affair here; what is behind it adds up.
      const pseudo = plainSum(Uint8Array.of(10, 0, 0, 2, 10, 0, 0, 1, 0, protocol === 'tcp' ? 6 : 17, 0, 0));
      const transportLength = (frame?.length ?? 0) - 34;
      expect((sum + pseudo + transportLength) % 0xffff).toBe(0);
    }
  });

  test('that asks for nothing is left as it is', () => {
    const read = frameOf('tcp', 700);
    read[0] = 0;
    expect(cut(read)).toEqual([read.subarray(headerBytes)]);
  });

  test('whose checksum would be 0 gets 0xffff', () => {
    const read = frameOf('udp', 2);
    // The payload makes up for all that is in front of it.
    const [frame] = cut(read) ?? [];
    const checksum = ((frame?.[40] ?? 0) << 8) | (frame?.[41] ?? 0);
    const word = ((read[headerBytes + 42] ?? 0) << 8) | (read[headerBytes + 43] ?? 0);
    const sum = word + checksum;
    read.set([(sum & 0xffff) >>> 8, sum], headerBytes + 42);
    if (sum > 0xffff) read[headerBytes + 43] = (read[headerBytes + 43] ?? 0) + 1;
    const [made] = cut(read) ?? [];
    expect(made?.subarray(40, 42)).toEqual(Uint8Array.of(0xff, 0xff));
  });
});

describe('refused', () => {
  const changed = (change: (view: DataView) => void, segment: Partial<LongSegment> = {}): Uint8Array => {
    const read = longSegment({ ...example, ...segment });
    change(new DataView(read.buffer));
    return read;
  };
  const ip = headerBytes + 14;
  const tcp = ip + 20;

  test.each<[string, Uint8Array]>([
    ['nothing but a header', new Uint8Array(headerBytes)],
    ['a piece of a header', new Uint8Array(3)],
    ['less than an Ethernet header', new Uint8Array(headerBytes + 13)],
    ['what fills all there is to read into', new Uint8Array(70_000)],
    ['a frame that is too long for a packet', new Uint8Array(headerBytes + packetCapacityBytes + 1)],
    ['headers longer than the frame', changed((view) => view.setUint16(2, 6000, true))],
    ['pieces of nothing', changed((view) => view.setUint16(4, 0, true))],
    ['pieces too long for a packet', changed((view) => view.setUint16(4, 2000, true))],
    ['a kind that is not known', changed((view) => view.setUint8(1, 3))],
    ['IPv6 that is IPv4', changed((view) => view.setUint8(1, 4))],
    ['UDP that is TCP', changed((view) => view.setUint8(1, 5))],
    ['UDP with a mark of TCP', changed((view) => view.setUint8(1, 0x85), { protocol: 'udp' })],
    ['no checksum asked for', changed((view) => view.setUint8(0, 0))],
    ['a checksum that begins elsewhere', changed((view) => view.setUint16(6, 32, true))],
    ['a checksum that is elsewhere', changed((view) => view.setUint16(8, 6, true))],
    ['another version', changed((view) => view.setUint8(ip, 0x65))],
    ['a total length that is another', changed((view) => view.setUint16(ip + 2, 1500))],
    ['a fragment', changed((view) => view.setUint16(ip + 6, 0x2000))],
    [
      'a TCP header longer than all',
      changed((view) => view.setUint8(tcp + 12, 0xf0), { payload: new Uint8Array(8) }),
    ],
    ['a TCP header too short', changed((view) => view.setUint8(tcp + 12, 0x40))],
    ['no payload', longSegment({ ...example, payload: new Uint8Array(0) })],
    ['neither IPv4 nor IPv6', changed((view) => view.setUint16(headerBytes + 12, 0x0806))],
    [
      'a checksum behind the end',
      changed((view) => view.setUint8(1, 0), { payload: new Uint8Array(1) }).slice(0, 60),
    ],
  ])('%s', (_name, read) => {
    expect(cut(read)).toBeUndefined();
  });
});

test('200,000 mutated and random inputs: none throws, none shows what is behind its end', () => {
  const random = new Random(41);
  const short = { payload: example.payload.slice(0, 300), gsoSize: 100 };
  const originals = (['tcp', 'udp'] as const).flatMap((protocol) =>
    ([4, 6] as const).flatMap((version) =>
      [false, true].map((vlan) => longSegment({ ...example, ...short, protocol, version, vlan })),
    ),
  );
  const single = longSegment({ ...example, payload: example.payload.slice(0, 60) });
  single[1] = 0;
  originals.push(single);
  const { bytes } = segmenter;
  const counts = { refused: 0, single: 0, cut: 0 };
  for (let i = 0; i < 200_000; i++) {
    const original = originals[random.integer(0, originals.length - 1)] ?? single;
    const read = random.chance(0.1) ? randomBytes(random, 200) : mutated(random, original);
    // Twice, with something else behind the end.
    const results = [0x00, 0xff].map((behind) => {
      bytes.fill(behind, read.length, read.length + 4096);
      bytes.set(read);
      if (!segmenter.load(read.length)) return undefined;
      const frames: string[] = [];
      while (!segmenter.isEmpty) {
        segmenter.next(packet);
        if (packet.length > packetCapacityBytes || packet.length < 14) throw new Error(`seed 41, input ${i}`);
        frames.push(Buffer.from(packet.bytes.subarray(0, packet.length)).toString('latin1'));
      }
      return frames;
    });
    if (results[0]?.join() !== results[1]?.join()) {
      throw new Error(`seed 41, input ${i} reads behind its end`);
    }
    const count = results[0]?.length ?? 0;
    if (count === 0) counts.refused++;
    else if (count === 1) counts.single++;
    else counts.cut++;
  }
  for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(5000);
}, 120_000);
