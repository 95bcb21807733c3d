/**
 * NTBs by hand, straight from the tables of spec 3.0 and in another layout than our own writer's: the truth that the
 * simulated function is held against.
 */

const signatures = {
  16: { header: 'NCMH', plain: 'NCM0', crc: 'NCM1' },
  32: { header: 'ncmh', plain: 'ncm0', crc: 'ncm1' },
} as const;

function ascii(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

function littleEndian(value: number, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, i) => Math.floor(value / 256 ** i) % 256);
}

/** Datagrams first, at offsets that only just fit, then the table. */
export function buildNtb(
  format: 16 | 32,
  sequence: number,
  datagrams: readonly Uint8Array[],
  crc = false,
): Uint8Array {
  const width = format / 8;
  const headerLength = format === 16 ? 12 : 16;
  const body: number[] = [];
  const entries: number[] = [];
  for (const datagram of datagrams) {
    entries.push(...littleEndian(headerLength + body.length, width), ...littleEndian(datagram.length, width));
    body.push(...datagram);
  }
  while ((headerLength + body.length) % 4 !== 0) body.push(0);
  const ndpIndex = headerLength + body.length;
  const ndpLength = (format === 16 ? 8 : 16) + entries.length + 2 * width;
  const { header, plain, crc: withCrc } = signatures[format];
  return Uint8Array.from([
    ...ascii(header),
    ...littleEndian(headerLength, 2),
    ...littleEndian(sequence, 2),
    ...littleEndian(ndpIndex + ndpLength, width),
    ...littleEndian(ndpIndex, width),
    ...body,
    ...ascii(crc ? withCrc : plain),
    ...littleEndian(ndpLength, 2),
    ...(format === 16 ? [0, 0] : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ...entries,
    ...littleEndian(0, 2 * width),
  ]);
}

export interface PlainNtb {
  readonly sequence: number;
  readonly blockLength: number;
  readonly datagrams: readonly Uint8Array[];
}

/** Reads an NTB with one table; throws if anything in it is not as it must be. */
export function readNtb(format: 16 | 32, bytes: Uint8Array, crc = false): PlainNtb {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = (offset: number): string => String.fromCharCode(...bytes.subarray(offset, offset + 4));
  const wide = (offset: number): number =>
    format === 16 ? view.getUint16(offset, true) : view.getUint32(offset, true);
  const check = (good: boolean, problem: string): void => {
    if (!good) throw new Error(problem);
  };
  const { header, plain, crc: withCrc } = signatures[format];
  check(text(0) === header, 'header signature');
  check(view.getUint16(4, true) === (format === 16 ? 12 : 16), 'header length');
  const blockLength = wide(8);
  check(blockLength === bytes.length, `block length ${blockLength} of ${bytes.length}`);
  const ndp = wide(format === 16 ? 10 : 12);
  check(ndp % 4 === 0, 'alignment of the table');
  check(text(ndp) === (crc ? withCrc : plain), 'table signature');
  const ndpLength = view.getUint16(ndp + 4, true);
  check(ndp + ndpLength <= bytes.length, 'table within the block');
  check(wide(ndp + (format === 16 ? 6 : 8)) === 0, 'one table');
  const datagrams: Uint8Array[] = [];
  const width = format / 8;
  for (let entry = ndp + (format === 16 ? 8 : 16); ; entry += 2 * width) {
    check(entry + 2 * width <= ndp + ndpLength, 'terminating entry');
    const offset = wide(entry);
    const length = wide(entry + width);
    if (offset === 0 || length === 0) break;
    // The payload behind the Ethernet header is aligned.
    check((offset + 14) % 4 === 0, 'alignment of a datagram');
    check(offset + length <= bytes.length, 'datagram within the block');
    datagrams.push(bytes.slice(offset, offset + length));
  }
  return { sequence: view.getUint16(6, true), blockLength, datagrams };
}
