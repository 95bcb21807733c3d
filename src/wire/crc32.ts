const polynomial = 0xedb8_8320;

function makeTable(): Uint32Array {
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    let value = i;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) !== 0 ? (value >>> 1) ^ polynomial : value >>> 1;
    table[i] = value;
  }
  return table;
}

const table = makeTable();

/** The CRC-32 of Ethernet (IEEE 802.3), as NCM appends it to a datagram in little-endian order. */
export function crc32(bytes: Uint8Array, offset: number, length: number): number {
  let crc = 0xffff_ffff;
  for (let i = offset; i < offset + length; i++) {
    crc = (table[(crc ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}
