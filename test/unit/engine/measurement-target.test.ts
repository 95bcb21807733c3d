import { expect, test } from 'vitest';
import { chooseTarget } from '../../../src/engine/measurement-target.ts';
import { formatIpv4Address, parseIpv4Address, parseIpv4Cidr } from '../../../src/wire/ipv4-address.ts';

/** Where pings and load go: to one other host that can be reached, or nowhere. */

function choose(wanted: string | undefined, own: string, gateway?: string): string {
  const cidr = parseIpv4Cidr(own);
  if (cidr === undefined) throw new Error(own);
  const { address, reason } = chooseTarget(wanted, {
    ...cidr,
    gateway: gateway === undefined ? undefined : parseIpv4Address(gateway),
  });
  return address === undefined ? reason : formatIpv4Address(address);
}

test.each([
  ['the gateway where nothing is named', undefined, '10.9.0.2/24', '10.9.0.1', '10.9.0.1'],
  ['a host of the network', '10.9.0.7', '10.9.0.2/24', undefined, '10.9.0.7'],
  ['a host behind the gateway', '192.0.2.1', '10.9.0.2/24', '10.9.0.1', '192.0.2.1'],
  ['the other end of a network of two', '10.9.0.3', '10.9.0.2/31', undefined, '10.9.0.3'],
  ['a gateway outside of a network of one', undefined, '10.9.0.2/32', '10.8.0.1', '10.8.0.1'],
])('%s', (_name, wanted, own, gateway, expected) => {
  expect(choose(wanted, own, gateway)).toBe(expected);
});

test.each([
  ['no gateway', undefined, '10.9.0.2/24', undefined, /no gateway to measure against/],
  ['no address', 'example.org', '10.9.0.2/24', '10.9.0.1', /"example.org" is not an IPv4 address/],
  ['everybody', '255.255.255.255', '10.9.0.2/24', '10.9.0.1', /not the address of a host/],
  ['everybody in the network', '10.9.0.255', '10.9.0.2/24', '10.9.0.1', /not the address of a host/],
  ['a group', '224.0.0.1', '10.9.0.2/24', '10.9.0.1', /not the address of a host/],
  ['nobody', '0.0.0.0', '10.9.0.2/24', '10.9.0.1', /not the address of a host/],
  ['this host itself', '127.0.0.1', '10.9.0.2/24', '10.9.0.1', /not the address of a host/],
  ['this end', '10.9.0.2', '10.9.0.2/24', '10.9.0.1', /address of this end/],
  ['another network without a gateway', '10.8.0.1', '10.9.0.2/24', undefined, /no way leads to 10.8.0.1/],
])('%s: nowhere', (_name, wanted, own, gateway, words) => {
  expect(choose(wanted, own, gateway)).toMatch(words);
});
