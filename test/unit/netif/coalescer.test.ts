import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { Coalescer } from '../../../src/netif/coalescer.ts';
import { Segmenter } from '../../../src/netif/segmenter.ts';
import { mutated, randomBytes } from '../wire/mutation.ts';
import { cutBy, headerBytes, type LongSegment, longSegment, plainSum, readFrame } from './long-segment.ts';

const segmenter = new Segmenter();
let written: Uint8Array[];
let counts: number[];
let coalescer: Coalescer;

beforeEach(() => {
  written = [];
  counts = [];
  coalescer = new Coalescer((bytes, length, frames) => {
    written.push(bytes.slice(0, length));
    counts.push(frames);
  });
});

/** What a network would carry of that: the frames that it is cut into. */
function cut(read: Uint8Array): Uint8Array[] {
  const frames = cutBy(segmenter, read);
  if (frames === undefined) throw new Error('refused');
  return frames;
}

const example: LongSegment = {
  protocol: 'tcp',
  version: 4,
  vlan: false,
  networkOptions: 0,
  tcpOptions: 12,
  flags: 0x10,
  sequence: 0xffff_fc00,
  identification: 0xfffe,
  payload: Uint8Array.from({ length: 10_000 }, (_, index) => index * 31),
  gsoSize: 1000,
};
const framesOf = (changes: Partial<LongSegment> = {}): Uint8Array[] =>
  cut(longSegment({ ...example, ...changes }));

function receive(frames: readonly Uint8Array[]): void {
  for (const frame of frames) {
    // Somewhere in a transfer.
    const transfer = new Uint8Array(frame.length + 7);
    transfer.set(frame, 5);
    expect(coalescer.add(transfer, 5, frame.length)).toBe(true);
  }
}

/** Changes 16 bits of a frame. */
function with16(frame: Uint8Array, offset: number, value: number): Uint8Array {
  const changed = frame.slice();
  changed.set([value >>> 8, value], offset);
  return changed;
}

/** As {@link with16}, in the TCP header over IPv4, with its checksum put right. */
function changedTcp(frame: Uint8Array, offset: number, value: number): Uint8Array {
  const changed = with16(with16(frame, 34 + offset, value), 34 + 16, 0);
  const length = frame.length - 34;
  const sum = plainSum(changed.subarray(34)) + plainSum(changed.subarray(26, 34)) + 6 + length;
  return with16(changed, 34 + 16, ~((sum % 0x10000) + (sum >>> 16)) & 0xffff);
}

/** As {@link with16}, in the header of IPv4, with its checksum put right. */
function changedIp(frame: Uint8Array, offset: number, value: number): Uint8Array {
  const changed = with16(with16(frame, 14 + offset, value), 24, 0);
  return with16(changed, 24, ~plainSum(changed.subarray(14, 34)) & 0xffff);
}

describe('segments that follow one another', () => {
  test.each([4, 6] as const)('of IPv%d become one, which is the same when it is cut again', (version) => {
    const frames = framesOf({ version });
    receive(frames);
    expect(written).toHaveLength(0);
    expect(coalescer.holds).toBe(true);
    coalescer.flush();
    expect(counts).toEqual([10]);
    expect(written.flatMap((read) => cut(read))).toEqual(frames);
    const [joined] = written;
    // NEEDS_CSUM, the kind, sizes and places of the header.
    const view = new DataView(joined?.buffer ?? new ArrayBuffer(0));
    const transport = version === 4 ? 34 : 54;
    expect([view.getUint8(0), view.getUint8(1)]).toEqual([1, version === 4 ? 1 : 4]);
    expect([2, 4, 6, 8].map((at) => view.getUint16(at, true))).toEqual([transport + 32, 1000, transport, 16]);
    expect(version === 6 || plainSum((joined ?? new Uint8Array(0)).subarray(24, 44)) === 0xffff).toBe(true);
  });

  test('are handed on with one that pushes, and with one that is shorter', () => {
    receive(framesOf({ flags: 0x18, payload: example.payload.slice(0, 3000) }));
    expect(counts).toEqual([3]);
    receive(framesOf({ payload: example.payload.slice(0, 2500) }));
    expect(counts).toEqual([3, 3]);
    expect(coalescer.holds).toBe(false);
  });

  test('up to 64 KB', () => {
    let sequence = 7;
    const frames = Array.from({ length: 11 }, () => {
      const part = framesOf({ sequence, version: 6 });
      sequence += 10_000;
      return part;
    }).flat();
    receive(frames);
    coalescer.flush();
    expect(counts).toEqual([65, 45]);
    expect(written.flatMap((read) => cut(read))).toEqual(frames);
  });
});

describe('not joined, and in order', () => {
  const [first = new Uint8Array(0), second = new Uint8Array(0), third = new Uint8Array(0)] = framesOf();
  const noDontFragment = (frame: Uint8Array): Uint8Array => changedIp(frame, 6, 0);

  test.each<[string, Uint8Array[]]>([
    ['a gap', [first, third]],
    ['the same again', [first, first]],
    ['the wrong order', [second, first]],
    ['another acknowledgment', [first, changedTcp(second, 10, 9)]],
    ['another window', [first, changedTcp(second, 14, 9)]],
    ['other options', [first, changedTcp(second, 24, 9)]],
    ['other ports', [first, changedTcp(second, 0, 9)]],
    ['FIN', [first, changedTcp(second, 12, 0x8011)]],
    ['URG', [first, changedTcp(second, 12, 0x8030)]],
    ['ECE', [first, changedTcp(second, 12, 0x8050)]],
    ['CWR on the first', [changedTcp(first, 12, 0x8090), second]],
    ['a reserved bit', [first, changedTcp(second, 12, 0x8110)]],
    ['no ACK', [changedTcp(first, 12, 0x8000), second]],
    ['another TOS: marked on the way', [first, changedIp(second, 0, 0x4513)]],
    ['another time to live', [first, changedIp(second, 8, 0x3f06)]],
    ['a fragment', [first, changedIp(second, 6, 0x6000)]],
    ['fragments that may be', [first, noDontFragment(second)]],
    ['another identification', [noDontFragment(first), changedIp(noDontFragment(second), 4, 77)]],
    ['another sender', [first, with16(second, 8, 77)]],
    ['a damaged second', [first, with16(second, 500, 0)]],
    ['a damaged first', [with16(first, 500, 0), second]],
    ['a damaged IPv4 header', [first, with16(second, 24, 0)]],
    ['padding', [first, Uint8Array.from([...second, 0, 0])]],
    ['IPv4 options', framesOf({ networkOptions: 4, payload: example.payload.slice(0, 2000) })],
    [
      'an extension header',
      framesOf({ version: 6, networkOptions: 8, payload: example.payload.slice(0, 2000) }),
    ],
    ['a VLAN', framesOf({ vlan: true, payload: example.payload.slice(0, 2000) })],
    ['UDP', framesOf({ protocol: 'udp', payload: example.payload.slice(0, 2000) })],
    [
      'the longer one behind',
      [framesOf({ gsoSize: 500 })[0] ?? first, framesOf({ sequence: 0xffff_fdf4 })[0] ?? first],
    ],
  ])('%s', (_name, frames) => {
    receive(frames);
    coalescer.flush();
    expect(counts).toEqual([1, 1]);
    expect(written).toEqual(
      frames.map((frame) => Uint8Array.from([...new Uint8Array(headerBytes), ...frame])),
    );
  });

  test('what must not be fragmented needs no identification', () => {
    receive([first, changedIp(second, 4, 77)]);
    coalescer.flush();
    expect(counts).toEqual([2]);
  });

  test('too long for anything', () => {
    expect(coalescer.add(new Uint8Array(70_000), 0, 70_000)).toBe(false);
  });
});

test('whatever comes, in whatever order: cut again it is what was received', () => {
  const part = fc.record({
    flow: fc.constantFrom(4 as const, 6 as const),
    pieces: fc.integer({ min: 1, max: 6 }),
    rest: fc.nat(99),
    flags: fc.constantFrom(0x10, 0x18, 0x11, 0x90),
    skips: fc.nat(9).map((chance) => chance === 0),
    damages: fc.nat(9).map((chance) => chance === 0),
    flushes: fc.nat(4).map((chance) => chance === 0),
  });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      written = [];
      const next = { 4: 0xffff_f000, 6: 5 };
      let identification = 0xfff0;
      const received: Uint8Array[] = [];
      for (const { flow, pieces, rest, flags, skips, damages, flushes } of parts) {
        const payload = example.payload.slice(0, pieces * 100 + rest);
        const frames = framesOf({
          version: flow,
          sequence: next[flow],
          identification,
          flags,
          payload,
          gsoSize: 100,
        });
        next[flow] = (next[flow] + payload.length) >>> 0;
        if (flow === 4) identification = (identification + frames.length) & 0xffff;
        if (skips) frames.shift();
        const last = frames.at(-1);
        if (damages && last !== undefined) last[last.length - 1] = (last.at(-1) ?? 0) ^ 0x55;
        receive(frames);
        received.push(...frames);
        if (flushes) coalescer.flush();
      }
      coalescer.flush();
      const text = (frames: readonly Uint8Array[]): string =>
        frames.map((frame) => Buffer.from(frame).toString('hex')).join('\n');
      expect(text(written.flatMap((read) => cut(read)))).toBe(text(received));
    }),
    { numRuns: 300 },
  );
}, 60_000);

test('100,000 mutated frames: none throws, all come out in order, and what was joined is good', () => {
  const random = new Random(43);
  const originals = [framesOf({ gsoSize: 90 }), framesOf({ gsoSize: 90, version: 6 })];
  let joined = 0;
  for (let i = 0; i < 20_000; i++) {
    const frames = (originals[i % 2] ?? []).slice(0, 5).map((frame) => {
      if (random.chance(0.7)) return frame;
      return random.chance(0.1) ? randomBytes(random, 80) : mutated(random, frame);
    });
    written = [];
    counts = [];
    for (const frame of frames) coalescer.add(frame, 0, frame.length);
    coalescer.flush();
    if (counts.reduce((sum, count) => sum + count, 0) !== frames.length) {
      throw new Error(`seed 43, input ${i}`);
    }
    for (const [index, read] of written.entries()) {
      if (counts[index] === 1) continue;
      joined++;
      if (!cut(read).every((frame) => readFrame(frame).isGood)) throw new Error(`seed 43, input ${i}`);
    }
  }
  expect(joined).toBeGreaterThan(10_000);
}, 60_000);
