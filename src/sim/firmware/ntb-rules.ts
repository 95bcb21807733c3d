import { readUint16Le, readUint32Le } from '../../wire/byte-order.ts';
import { ethernetHeaderLength } from '../../wire/ethernet.ts';
import { ndpLengthOffset, type NtbFormat, ntbLayouts } from '../../wire/ntb.ts';

/** How a device wants NTBs laid out that come to it; what it does not name it does not look at. */
export interface NtbRules {
  /** There is one NDP, and it stands behind all datagrams. */
  readonly ndpToEnd?: boolean;
  /** NDPs lie at multiples of it. */
  readonly ndpAlignment?: number;
  /** What follows the Ethernet header lies where position mod `divisor` is `remainder`. */
  readonly divisor?: number;
  readonly remainder?: number;
}

/** Whether an NTB that is whole keeps to the rules. */
export function keepsRules(bytes: Uint8Array, length: number, format: NtbFormat, rules: NtbRules): boolean {
  const layout = ntbLayouts[format];
  const field = (offset: number): number =>
    format === 'ntb16' ? readUint16Le(bytes, offset) : readUint32Le(bytes, offset);
  const ndp = field(layout.ndpIndexOffset);
  const ndpLength = readUint16Le(bytes, ndp + ndpLengthOffset);
  if (ndp + ndpLength > length) return false;
  if (rules.ndpAlignment !== undefined && ndp % rules.ndpAlignment !== 0) return false;
  if (rules.ndpToEnd === true && field(ndp + layout.nextNdpOffset) !== 0) return false;
  for (let entry = ndp + layout.ndpHeaderLength; entry < ndp + ndpLength; entry += layout.entryLength) {
    const offset = field(entry);
    const datagramLength = field(entry + layout.entryLength / 2);
    if (offset === 0 || datagramLength === 0) break;
    if (rules.ndpToEnd === true && offset + datagramLength > ndp) return false;
    const { divisor, remainder = 0 } = rules;
    if (divisor !== undefined && (offset + ethernetHeaderLength) % divisor !== remainder) return false;
  }
  return true;
}
