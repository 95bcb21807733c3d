import type { Random } from '../../../src/base/random.ts';

const interestingBytes = [0x00, 0x01, 0x02, 0x03, 0x07, 0x08, 0x09, 0x7f, 0x80, 0xfe, 0xff] as const;

function interestingByte(random: Random): number {
  return interestingBytes[random.integer(0, interestingBytes.length - 1)] ?? 0;
}

/** Up to `maxLength` bytes, in every third case with few different values. */
export function randomBytes(random: Random, maxLength: number): Uint8Array {
  const fewValues = random.chance(1 / 3);
  return Uint8Array.from({ length: random.integer(0, maxLength) }, () =>
    fewValues ? interestingByte(random) : random.integer(0, 255),
  );
}

/** A copy of a good input with one to eight things wrong: bits, bytes, words, parts moved, cut off or added. */
export function mutated(random: Random, original: Uint8Array): Uint8Array {
  let bytes = original.slice();
  for (let i = random.integer(1, 8); i > 0; i--) {
    const at = random.integer(0, Math.max(0, bytes.length - 1));
    const interesting = interestingByte(random);
    switch (random.integer(0, 6)) {
      case 0:
        bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7));
        break;
      case 1:
        bytes[at] = interesting;
        break;
      case 2:
        bytes.fill(interesting, at, at + random.integer(2, 4));
        break;
      case 3:
        bytes[at] = random.integer(0, 255);
        break;
      case 4:
        bytes.copyWithin(at, random.integer(0, bytes.length), random.integer(0, bytes.length));
        break;
      case 5:
        bytes = bytes.slice(0, at);
        break;
      case 6: {
        const added = randomBytes(random, 32);
        const longer = new Uint8Array(bytes.length + added.length);
        longer.set(bytes.subarray(0, at));
        longer.set(added, at);
        longer.set(bytes.subarray(at), at + added.length);
        bytes = longer;
        break;
      }
    }
  }
  return bytes;
}
