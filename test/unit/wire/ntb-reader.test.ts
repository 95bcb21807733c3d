import { describe, expect, test } from 'vitest';
import { writeUint16Le, writeUint32Le } from '../../../src/wire/byte-order.ts';
import {
  ipStreamSignature,
  isIpStreamSignature,
  ncmCrcSignatures,
  ncmSignatures,
  ntbLayouts,
  sessionOfSignature,
  type NtbFormat,
} from '../../../src/wire/ntb.ts';
import { NtbReader, type NtbReadResult } from '../../../src/wire/ntb-reader.ts';
import { bytesOf, embedded } from './bytes-of.ts';
import { NtbCapture } from './ntb-capture.ts';

interface Ndp {
  readonly at: number;
  readonly signature?: number;
  /** The length that it claims; by default that of its entries with the terminating one. */
  readonly claims?: number;
  readonly entries: readonly (readonly [offset: number, length: number])[];
  readonly next?: number;
}

/** An NTB of `length` bytes in which byte i is i mod 256, with a header and NDPs wherever wanted. */
function ntbOf(
  format: NtbFormat,
  length: number,
  firstNdp: number,
  ndps: readonly Ndp[],
  header: { readonly blockLength?: number; readonly sequence?: number } = {},
): Uint8Array {
  const layout = ntbLayouts[format];
  const is16 = format === 'ntb16';
  const write = is16 ? writeUint16Le : writeUint32Le;
  const bytes = Uint8Array.from({ length }, (_, i) => i);
  bytes.fill(0, 0, layout.headerLength);
  writeUint32Le(bytes, 0, layout.headerSignature);
  writeUint16Le(bytes, 4, layout.headerLength);
  writeUint16Le(bytes, 6, header.sequence ?? 0);
  write(bytes, layout.blockLengthOffset, header.blockLength ?? length);
  write(bytes, layout.ndpIndexOffset, firstNdp);
  for (const { at, signature, claims, entries, next } of ndps) {
    const ndpLength = layout.ndpHeaderLength + (entries.length + 1) * layout.entryLength;
    bytes.fill(0, at, at + ndpLength);
    writeUint32Le(bytes, at, signature ?? ncmSignatures[format]);
    writeUint16Le(bytes, at + 4, claims ?? ndpLength);
    write(bytes, at + layout.nextNdpOffset, next ?? 0);
    entries.forEach(([offset, datagramLength], i) => {
      const entry = at + layout.ndpHeaderLength + i * layout.entryLength;
      write(bytes, entry, offset);
      write(bytes, entry + layout.entryLength / 2, datagramLength);
    });
  }
  return bytes;
}

interface Reading {
  readonly result: NtbReadResult;
  /** [first byte, length] of each datagram: by the filling, the first byte is the offset mod 256. */
  readonly datagrams: readonly (readonly [number, number])[];
  readonly badDatagrams: number;
  readonly skippedNdps: number;
}

function read(format: NtbFormat, bytes: Uint8Array, maxNtbBytes = 16_384): Reading {
  const capture = new NtbCapture();
  const reader = new NtbReader({ format, maxNtbBytes, sink: capture });
  // In the middle of a buffer: offsets count from the NTB's start, and its end is not the buffer's.
  const result = reader.read(embedded(bytes, 5, 3000), 5, bytes.length);
  return {
    result,
    datagrams: capture.datagrams.map((one) => [one.bytes[0] ?? -1, one.bytes.length]),
    badDatagrams: reader.badDatagrams,
    skippedNdps: reader.skippedNdps,
  };
}

function ok(...datagrams: readonly (readonly [number, number])[]): Reading {
  return { result: 'ok', datagrams, badDatagrams: 0, skippedNdps: 0 };
}

test('reads the golden NTB of spec section 9', () => {
  const frame = new Uint8Array(60).fill(0xa5);
  const bytes = new Uint8Array(246);
  bytes.set(bytesOf('4E 43 4D 48 0C 00 00 00 F6 00 0C 00 | 4E 43 4D 30 10 00 00 00 BA 00 3C 00 00 00 00 00'));
  bytes.set(frame, 186);
  const capture = new NtbCapture();
  const reader = new NtbReader({ format: 'ntb16', maxNtbBytes: 16_384, sink: capture });
  expect(reader.read(bytes, 0, 246)).toBe('ok');
  expect(capture.datagrams).toEqual([{ signature: ncmSignatures.ntb16, bytes: frame }]);
  expect([reader.ntbs, reader.datagrams, reader.payloadBytes, reader.overheadBytes]).toEqual([1, 1, 60, 186]);
});

describe.each([
  { format: 'ntb16' as const, first: 12 },
  { format: 'ntb32' as const, first: 16 },
])('$format', ({ format, first }) => {
  const layout = ntbLayouts[format];
  const one = (extra: Partial<Ndp>, length = 300): Uint8Array =>
    ntbOf(format, length, first, [{ at: first, entries: [[100, 20]], ...extra }]);

  describe('good ones', () => {
    test('several datagrams in the order of the table, wherever they lie', () => {
      const bytes = one({
        entries: [
          [200, 50],
          [100, 14],
          [280, 20],
        ],
      });
      expect(read(format, bytes)).toEqual(ok([200, 50], [100, 14], [280 - 256, 20]));
    });

    test('several NDPs, linked forwards and backwards', () => {
      const bytes = ntbOf(format, 600, 300, [
        { at: 300, entries: [[400, 20]], next: 200 },
        { at: 200, entries: [[420, 20]], next: 500 },
        { at: 500, entries: [[440, 20]] },
      ]);
      expect(read(format, bytes)).toEqual(ok([400 - 256, 20], [420 - 256, 20], [440 - 256, 20]));
    });

    test('an NDP of another kind is passed over, here one with CRCs', () => {
      const bytes = ntbOf(format, 600, 200, [
        { at: 200, signature: ncmCrcSignatures[format], entries: [[100, 20]], next: 300 },
        { at: 300, entries: [[440, 20]] },
      ]);
      expect(read(format, bytes)).toEqual({ ...ok([440 - 256, 20]), skippedNdps: 1 });
    });

    test('a block length below or above what came, or 0', () => {
      for (const blockLength of [0, 20, 299, 16_384]) {
        const bytes = ntbOf(format, 300, first, [{ at: first, entries: [[100, 20]] }], { blockLength });
        expect(read(format, bytes)).toEqual(ok([100, 20]));
      }
    });

    test('an empty NDP, at the first entry', () => {
      expect(
        read(
          format,
          one({
            entries: [
              [0, 0],
              [100, 20],
            ],
          }),
        ),
      ).toEqual(ok());
      expect(
        read(
          format,
          one({
            entries: [
              [0, 20],
              [100, 20],
            ],
          }),
        ),
      ).toEqual(ok());
      expect(
        read(
          format,
          one({
            entries: [
              [100, 0],
              [100, 20],
            ],
          }),
        ),
      ).toEqual(ok());
    });

    test('an empty entry ends its NDP, not the others', () => {
      const bytes = ntbOf(format, 600, 200, [
        {
          at: 200,
          entries: [
            [100, 20],
            [0, 0],
            [130, 20],
          ],
          next: 400,
        },
        { at: 400, entries: [[440 + 64, 20]] },
      ]);
      expect(read(format, bytes)).toEqual(ok([100, 20], [504 - 256, 20]));
    });

    test('the last entry of a table is never a datagram', () => {
      const bytes = one({
        entries: [
          [100, 20],
          [150, 20],
        ],
        claims: layout.ndpHeaderLength + 2 * layout.entryLength,
      });
      expect(read(format, bytes)).toEqual(ok([100, 20]));
    });

    test('a table with half an entry at its end', () => {
      const claims = layout.minNdpLength + layout.entryLength / 2;
      expect(read(format, one({ claims }))).toEqual(ok([100, 20]));
    });

    test('a datagram that ends where the bytes do', () => {
      expect(read(format, one({ entries: [[280, 20]] }))).toEqual(ok([24, 20]));
    });
  });

  describe('a datagram that cannot be ends its NDP and nothing else', () => {
    test.each([
      ['beyond the end', [281, 20]],
      ['far beyond the end', [format === 'ntb16' ? 0xffff : 0xffff_ffff, 20]],
      ['with a length that wraps around', [100, format === 'ntb16' ? 0xffff : 0xffff_ffff]],
      ['with both near the end of numbers', [format === 'ntb16' ? 0xfff0 : 0xffff_fff0, 0x20]],
      ['shorter than an Ethernet header', [100, 13]],
    ] as const)('%s', (_name, entry) => {
      const bytes = ntbOf(format, 300, 200, [
        { at: 200, entries: [[100, 20], entry, [130, 20]], next: 250 },
        { at: 250, entries: [[160, 20]] },
      ]);
      expect(read(format, bytes)).toEqual({ ...ok([100, 20], [160, 20]), badDatagrams: 1 });
      const atOnce = ntbOf(format, 300, 200, [{ at: 200, entries: [entry, [130, 20]] }]);
      expect(read(format, atOnce)).toEqual({ ...ok(), badDatagrams: 1 });
    });

    test('longer than the largest NTB', () => {
      const bytes = ntbOf(
        format,
        3000,
        first,
        [
          {
            at: first,
            entries: [
              [100, 2048],
              [100, 2049],
            ],
          },
        ],
        {
          blockLength: 2048,
        },
      );
      expect(read(format, bytes, 2048)).toEqual({ ...ok([100, 2048]), badDatagrams: 1 });
    });
  });

  describe('bad ones', () => {
    const faulty = (result: NtbReadResult): Reading => ({ ...ok(), result });

    test('short', () => {
      const bytes = one({});
      for (let length = 0; length < layout.headerLength + layout.ndpHeaderLength; length++) {
        expect(read(format, bytes.subarray(0, length))).toEqual(faulty('short'));
      }
    });

    test('bad signature, the other format included', () => {
      const bytes = one({});
      bytes[3] = 0x49;
      expect(read(format, bytes)).toEqual(faulty('bad-signature'));
      expect(read(format === 'ntb16' ? 'ntb32' : 'ntb16', one({}))).toEqual(faulty('bad-signature'));
    });

    test('bad block length', () => {
      const bytes = ntbOf(format, 300, first, [{ at: first, entries: [[100, 20]] }], { blockLength: 2049 });
      expect(read(format, bytes, 2049)).toEqual(ok([100, 20]));
      expect(read(format, bytes, 2048)).toEqual(faulty('bad-block-length'));
    });

    test.each([
      ['an NDP at 0', 0],
      ['an NDP whose header is cut off', 300 - layout.ndpHeaderLength + 1],
      ['an NDP at the end', 300],
      ['an NDP beyond the end', 301],
      ['an NDP at the end of numbers', format === 'ntb16' ? 0xffff : 0xffff_ffff],
    ])('%s', (_name, at) => {
      expect(read(format, ntbOf(format, 300, at, []))).toEqual(faulty('bad-ndp'));
    });

    test('an NDP with a length below the least', () => {
      for (const claims of [0, layout.ndpHeaderLength, layout.minNdpLength - 1]) {
        expect(read(format, one({ claims }))).toEqual(faulty('bad-ndp'));
      }
    });

    test('an NDP that runs past the end', () => {
      expect(read(format, one({ claims: 300 - first }))).toMatchObject({ result: 'ok' });
      expect(read(format, one({ claims: 301 - first }))).toEqual(faulty('bad-ndp'));
      expect(read(format, one({ claims: 0xffff }))).toEqual(faulty('bad-ndp'));
    });

    test('what came before a bad NDP has been handed out', () => {
      expect(read(format, one({ next: 299 }))).toEqual({ ...ok([100, 20]), result: 'bad-ndp' });
    });

    test('the bad NDP matters even if it would be passed over', () => {
      expect(read(format, one({ signature: 0, claims: 0 }))).toEqual(faulty('bad-ndp'));
    });

    test('an NDP that points at itself: 50 times, then no more', () => {
      const { result, datagrams } = read(format, one({ next: first }));
      expect(result).toBe('too-many-ndps');
      expect(datagrams).toHaveLength(50);
    });

    test('two NDPs that point at one another, passed over', () => {
      const bytes = ntbOf(format, 300, 100, [
        { at: 100, signature: 1, entries: [[200, 20]], next: 150 },
        { at: 150, signature: 2, entries: [[200, 20]], next: 100 },
      ]);
      expect(read(format, bytes)).toEqual({ ...faulty('too-many-ndps'), skippedNdps: 50 });
    });

    test('50 NDPs are fine, 51 are not', () => {
      const chain = (count: number): Uint8Array => {
        const step = layout.minNdpLength;
        const ndps = Array.from({ length: count }, (_, i) => ({
          at: 200 + i * step,
          entries: [[100, 20]] as const,
          next: i === count - 1 ? 0 : 200 + (i + 1) * step,
        }));
        return ntbOf(format, 200 + count * step, 200, ndps);
      };
      expect(read(format, chain(50)).result).toBe('ok');
      expect(read(format, chain(50)).datagrams).toHaveLength(50);
      expect(read(format, chain(51)).result).toBe('too-many-ndps');
    });

    test('a range outside of the buffer', () => {
      const bytes = one({});
      const reader = new NtbReader({ format, maxNtbBytes: 16_384, sink: new NtbCapture() });
      expect(reader.read(bytes, 1, bytes.length)).toBe('short');
      expect(reader.read(bytes, -1, bytes.length)).toBe('short');
    });

    test('a table that overlaps header, itself and its datagrams', () => {
      const bytes = one({
        entries: [
          [first, 200],
          [1, 299],
          [first, 14],
        ],
      });
      expect(read(format, bytes).datagrams.map(([, length]) => length)).toEqual([200, 299, 14]);
    });
  });
});

test('MBIM: the same walk with other signatures, shorter datagrams, and the session in the signature', () => {
  const capture = new NtbCapture();
  const reader = new NtbReader({
    format: 'ntb16',
    maxNtbBytes: 16_384,
    minDatagramBytes: 1,
    acceptsSignature: (signature) => isIpStreamSignature('ntb16', signature),
    sink: capture,
  });
  const bytes = ntbOf('ntb16', 300, 200, [
    { at: 200, signature: ipStreamSignature('ntb16', 5), entries: [[100, 4]], next: 230 },
    { at: 230, entries: [[120, 20]], next: 260 },
    { at: 260, signature: ipStreamSignature('ntb16', 0), entries: [[140, 1]] },
  ]);
  expect(reader.read(bytes, 0, 300)).toBe('ok');
  expect(capture.datagrams.map((one) => [sessionOfSignature(one.signature), one.bytes.length])).toEqual([
    [5, 4],
    [0, 1],
  ]);
  expect(reader.skippedNdps).toBe(1);
});

test('sequence numbers: gaps are counted, a wrap and a device that does not count are none', () => {
  const glitchesAfter = (...sequences: readonly number[]): number => {
    const reader = new NtbReader({ format: 'ntb16', maxNtbBytes: 16_384, sink: new NtbCapture() });
    for (const sequence of sequences) {
      reader.read(ntbOf('ntb16', 60, 12, [{ at: 12, entries: [[30, 20]] }], { sequence }), 0, 60);
    }
    return reader.sequenceGlitches;
  };
  expect(glitchesAfter(0, 1, 2, 3)).toBe(0);
  expect(glitchesAfter(1, 2, 3)).toBe(0);
  expect(glitchesAfter(0, 0, 0)).toBe(0);
  expect(glitchesAfter(1, 2, 4, 5)).toBe(1);
  expect(glitchesAfter(1, 2, 2)).toBe(1);
  // To 65,535 there is one jump, and then the wrap.
  expect(glitchesAfter(0xfffe, 0xffff, 0, 1)).toBe(1);

  const reader = new NtbReader({ format: 'ntb16', maxNtbBytes: 16_384, sink: new NtbCapture() });
  for (const sequence of [1, 2, 0]) {
    if (sequence === 0) reader.restartSequence();
    reader.read(ntbOf('ntb16', 60, 12, [{ at: 12, entries: [[30, 20]] }], { sequence }), 0, 60);
  }
  expect(reader.sequenceGlitches).toBe(0);
});

test('only NTBs that were read to their end count as such', () => {
  const reader = new NtbReader({ format: 'ntb16', maxNtbBytes: 16_384, sink: new NtbCapture() });
  reader.read(ntbOf('ntb16', 100, 12, [{ at: 12, entries: [[40, 30]] }]), 0, 100);
  reader.read(ntbOf('ntb16', 100, 12, [{ at: 12, entries: [[40, 30]], next: 99 }]), 0, 100);
  reader.read(new Uint8Array(100), 0, 100);
  expect([reader.ntbs, reader.datagrams, reader.payloadBytes, reader.overheadBytes]).toEqual([1, 2, 60, 70]);
});
