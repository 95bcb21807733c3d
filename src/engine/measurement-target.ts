import type { Ipv4Configuration } from '../ip/ip-stack.ts';
import {
  formatIpv4Address,
  ipv4AddressIsHost,
  ipv4InSameNetwork,
  ipv4NetworkBroadcast,
  parseIpv4Address,
} from '../wire/ipv4-address.ts';

/** Networks of two addresses, and of one, have no address for all of them. */
const longestPrefixWithBroadcast = 30;

/** The host to measure against, or in words why there is none. */
export type ChosenTarget =
  | { readonly address: number; readonly reason?: never }
  | { readonly address?: never; readonly reason: string };

/**
 * Decides where pings and load go. Only ever to one other host: what floods a network's every host is no measurement.
 * @param wanted as the user wrote it; undefined: the gateway
 */
export function chooseTarget(wanted: string | undefined, configuration: Ipv4Configuration): ChosenTarget {
  const { address: own, prefixLength, gateway } = configuration;
  const target = wanted === undefined ? gateway : parseIpv4Address(wanted);
  if (target === undefined) {
    return wanted === undefined
      ? { reason: 'there is no gateway to measure against' }
      : { reason: `"${wanted}" is not an IPv4 address` };
  }
  const name = formatIpv4Address(target);
  const isOnLink = ipv4InSameNetwork(target, own, prefixLength);
  const isBroadcast =
    isOnLink &&
    prefixLength <= longestPrefixWithBroadcast &&
    target === ipv4NetworkBroadcast(own, prefixLength);
  if (!ipv4AddressIsHost(target) || isBroadcast) return { reason: `${name} is not the address of a host` };
  if (target === own) return { reason: `${name} is the address of this end` };
  if (!isOnLink && gateway === undefined) {
    return {
      reason: `no way leads to ${name}: it is not in the network of ${formatIpv4Address(own)}/${prefixLength}, and there is no gateway`,
    };
  }
  return { address: target };
}
