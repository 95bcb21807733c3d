/**
 * The tables of Linux's network drivers as its own build has them (modules.alias of the laboratory's kernel), against
 * ours: each line of theirs is one of ours, and each of ours one of theirs. No virtual machine is needed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { type DeviceRule, findRule } from '../../src/minidrivers/device-rule.ts';
import { networkDrivers } from '../../src/minidrivers/network-drivers.ts';
import type { AltSetting } from '../../src/wire/usb-descriptor.ts';

/** A line of modules.alias; undefined: any. */
interface Alias {
  readonly vendorId: number | undefined;
  readonly productId: number | undefined;
  readonly triple: readonly (number | undefined)[];
  readonly interfaceNumber: number | undefined;
}

const aliasPattern =
  /^alias usb:v(\*|\w{4})p(\*|\w{4})d\*dc(?:\*|\w\w)dsc(?:\*|\w\w)dp(?:\*|\w\w)ic(\*|\w\w)isc(\*|\w\w)ip(\*|\w\w)in(\*|\w\w\*) ([\w-]+)$/;

/** Its line for this is there to have the module loaded only; the disk that it shows then is usb-storage's. */
const unswitchedKalmia = '04e8:689a';
const vendorSpecific = 0xff;
const nobodysProduct = 0xbeef;
const nobodysId = 'dead:beef';

const names = [...new Set(networkDrivers.map(({ name }) => name))];
let aliases: ReadonlyMap<string, readonly Alias[]>;

beforeAll(() => {
  const kernel =
    process.env['LAB_KERNEL_DIR'] ?? fileURLToPath(new URL('../../.cache/lab/kernel', import.meta.url));
  const modules = join(kernel, 'root/usr/lib/modules');
  const [version = ''] = readdirSync(modules);
  const number = (text: string): number | undefined => (text === '*' ? undefined : Number.parseInt(text, 16));
  const found = new Map<string, Alias[]>();
  for (const line of readFileSync(join(modules, version, 'modules.alias'), 'utf8').split('\n')) {
    const [, vendor = '', product = '', ...rest] = aliasPattern.exec(line) ?? [];
    const [ofClass = '', subclass = '', protocol = '', interfaceNumber = '', module = ''] = rest;
    const list = found.get(module) ?? [];
    found.set(module, list);
    list.push({
      vendorId: number(vendor),
      productId: number(product),
      triple: [number(ofClass), number(subclass), number(protocol)],
      interfaceNumber: number(interfaceNumber),
    });
  }
  aliases = found;
});

function aliasesOf(driver: string): readonly Alias[] {
  return aliases.get(driver.replaceAll('-', '_')) ?? [];
}

function hex(id: number): string {
  return id.toString(16).padStart(4, '0');
}

function setting(triple: readonly (number | undefined)[], interfaceNumber: number): AltSetting {
  const [interfaceClass = vendorSpecific, interfaceSubclass = 0, interfaceProtocol = 0] = triple;
  return {
    interfaceNumber,
    alternateSetting: 0,
    interfaceClass,
    interfaceSubclass,
    interfaceProtocol,
    nameIndex: 0,
    endpoints: [],
    extra: new Uint8Array(0),
  };
}

/** What a rule is about, one id and one interface number at a time. */
function samplesOf({
  ids,
  interfaceNumbers,
}: DeviceRule): readonly (readonly [string, number | undefined])[] {
  if (interfaceNumbers === undefined) return (ids ?? [nobodysId]).map((id) => [id, undefined] as const);
  return Object.entries(interfaceNumbers).flatMap(([id, numbers]) =>
    numbers.map((interfaceNumber) => [id, interfaceNumber] as const),
  );
}

describe.each(names)('%s', (name) => {
  const drivers = networkDrivers.filter((driver) => driver.name === name);

  test("each line of Linux's table is one of ours", () => {
    expect(aliasesOf(name).length).toBeGreaterThan(0);
    const missing = aliasesOf(name)
      .map(({ vendorId, productId, triple, interfaceNumber }) => ({
        id: vendorId === undefined ? nobodysId : `${hex(vendorId)}:${hex(productId ?? nobodysProduct)}`,
        altSetting: setting(triple, interfaceNumber ?? 0),
      }))
      .filter(
        ({ id, altSetting }) => !drivers.some(({ rules }) => findRule(rules, id, altSetting) !== undefined),
      )
      .map(({ id }) => id);
    expect(missing).toEqual(name === 'kalmia' ? [unswitchedKalmia] : []);
  });

  test("each line of ours is one of Linux's", () => {
    const invented = drivers.flatMap(({ rules }) =>
      rules.flatMap((rule) =>
        samplesOf(rule).filter(([id, interfaceNumber]) => {
          const [vendor, product] = id.split(':').map((part) => Number.parseInt(part, 16));
          return !aliasesOf(name).some(
            (alias) =>
              [undefined, vendor].includes(alias.vendorId) &&
              [undefined, product].includes(alias.productId) &&
              [undefined, interfaceNumber].includes(alias.interfaceNumber) &&
              alias.triple.every((part, i) => part === undefined || part === rule.triple?.[i]),
          );
        }),
      ),
    );
    expect(invented).toEqual([]);
  });
});
