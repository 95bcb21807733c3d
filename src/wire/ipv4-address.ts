/** IPv4 addresses are unsigned 32-bit numbers: 10.9.0.2 is 0x0a090002. */

export const unspecifiedIpv4Address = 0;
export const broadcastIpv4Address = 0xffff_ffff;

/** "10.9.0.2". */
export function formatIpv4Address(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 0xff}.${(address >>> 8) & 0xff}.${address & 0xff}`;
}

/** Four decimal numbers without leading zeros (which some programs take for octal), or undefined. */
export function parseIpv4Address(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let address = 0;
  for (const part of parts) {
    if (!/^(?:0|[1-9][0-9]{0,2})$/.test(part)) return undefined;
    const value = Number(part);
    if (value > 255) return undefined;
    address = address * 256 + value;
  }
  return address;
}

/** An address and the length of its network's prefix, 0 … 32. */
export interface Ipv4Cidr {
  readonly address: number;
  readonly prefixLength: number;
}

/** "10.9.0.2/24"; the host's bits are kept. Undefined if it is anything else. */
export function parseIpv4Cidr(text: string): Ipv4Cidr | undefined {
  const [addressText = '', prefixText = '', ...more] = text.split('/');
  const address = parseIpv4Address(addressText);
  if (address === undefined || more.length > 0 || !/^(?:0|[1-9][0-9]?)$/.test(prefixText)) return undefined;
  const prefixLength = Number(prefixText);
  return prefixLength > 32 ? undefined : { address, prefixLength };
}

export function formatIpv4Cidr(cidr: Ipv4Cidr): string {
  return `${formatIpv4Address(cidr.address)}/${cidr.prefixLength}`;
}

/** 24 → 0xffffff00. */
export function ipv4PrefixMask(prefixLength: number): number {
  return prefixLength === 0 ? 0 : (0xffff_ffff << (32 - prefixLength)) >>> 0;
}

/** 0xffffff00 → 24; undefined if the ones are not all in front. */
export function ipv4PrefixLengthOfMask(mask: number): number | undefined {
  const prefixLength = Math.clz32(~mask);
  return ipv4PrefixMask(prefixLength) === mask >>> 0 ? prefixLength : undefined;
}

export function ipv4InSameNetwork(a: number, b: number, prefixLength: number): boolean {
  return ((a ^ b) & ipv4PrefixMask(prefixLength)) === 0;
}

/** The directed broadcast address of the network. */
export function ipv4NetworkBroadcast(address: number, prefixLength: number): number {
  return (address | ~ipv4PrefixMask(prefixLength)) >>> 0;
}

export function ipv4AddressIsMulticast(address: number): boolean {
  return address >>> 28 === 0xe;
}

/** Whether it can be the address of one host on a network: not of this host to itself (127/8), of none, or of many. */
export function ipv4AddressIsHost(address: number): boolean {
  const first = address >>> 24;
  return first !== 0 && first !== 127 && first < 224;
}
