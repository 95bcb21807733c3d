import type { Fact } from '../contract/session.ts';

/** Hides what identifies a device or a person. */
export interface Mask {
  text(text: string): string;
  fact(fact: Fact): Fact;
}

/** Leaves everything readable. */
export const noMask: Mask = { text: (text) => text, fact: (fact) => fact };

const serialName = /serial|\b(?:imei|imeisv|imsi|iccid|meid|esn|msisdn|phone number)\b/i;
const macName = /\bmac\b|hardware address/i;
/** `02:1e:10:1f:ac:0d`, also with hyphens; the first three octets are the maker's. */
const macAddress = /\b([0-9a-f]{2})([:-])([0-9a-f]{2})\2([0-9a-f]{2})(?:\2[0-9a-f]{2}){3}\b/gi;
const bareMacAddress = /^([0-9a-f]{6})[0-9a-f]{6}$/i;
/** IMSI (14 or 15 digits), IMEI (15), IMEISV (16), ICCID (18 to 22). */
const longNumber = /(?<![\d.])\d{14,22}(?![\d.])/g;
/** A shorter serial number would be found in places where it is something else. */
const shortestToSearchFor = 6;

/**
 * Hides serial numbers, MAC addresses, and the numbers of modems and SIM cards: in the facts that are named so,
 * wherever their values turn up elsewhere, and whatever looks like a MAC address or such a number. What is left tells
 * two devices of a kind apart: the maker's part of a MAC address, or the last two characters.
 */
export function createMask(facts: readonly Fact[]): Mask {
  const known = facts
    .filter((fact) => namesIdentifier(fact) && fact.value.trim().length >= shortestToSearchFor)
    .map(({ value }) => value.trim())
    // The longest first, so that one that is part of another does not spoil it.
    .toSorted((a, b) => b.length - a.length);
  const text = (original: string): string => {
    let masked = original;
    for (const value of known) masked = masked.replaceAll(value, hide(value));
    return masked
      .replaceAll(macAddress, (_all, first: string, separator: string, second: string, third: string) =>
        [first, second, third, 'xx', 'xx', 'xx'].join(separator),
      )
      .replaceAll(longNumber, hide);
  };
  return {
    text,
    fact: (fact) => {
      const masked = text(fact.value);
      const hidden = namesIdentifier(fact) && masked === fact.value && fact.value !== '';
      return { ...fact, name: text(fact.name), value: hidden ? hide(fact.value.trim()) : masked };
    },
  };
}

function namesIdentifier({ name }: Fact): boolean {
  return serialName.test(name) || macName.test(name);
}

function hide(value: string): string {
  const withSeparators = value.replaceAll(
    macAddress,
    (_all, first: string, separator: string, second: string, third: string) =>
      [first, second, third, 'xx', 'xx', 'xx'].join(separator),
  );
  if (withSeparators !== value) return withSeparators;
  const bare = bareMacAddress.exec(value);
  if (bare !== null && /[a-f]/i.test(value)) return `${bare[1] ?? ''}xxxxxx`;
  return `•••${value.length > 4 ? value.slice(-2) : ''}`;
}
