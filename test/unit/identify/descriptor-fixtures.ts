import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { identify, type IdentifiedDevice, type IdentifyResult } from '../../../src/identify/identify.ts';

/** Listings that people have posted, and what Linux makes of these devices. */

const folder = new URL('../../fixtures/descriptors/', import.meta.url);

const factsSchema = z.object({
  vid: z.string(),
  pid: z.string(),
  complete: z.boolean(),
  expected_driver: z.string(),
  linux_driver_by_interface: z.record(z.string(), z.string()).nullable(),
  expected_by_function: z.array(
    z.object({
      configuration: z.number(),
      control_interface: z.number(),
      data_interface: z.number(),
      driver: z.string(),
    }),
  ),
});
export type Facts = z.infer<typeof factsSchema>;

const furtherSchema = z.record(
  z.string(),
  z.object({
    source: z.string(),
    basis: z.string(),
    devices: z.array(
      z.object({
        id: z.string().nullable(),
        functions: z.array(
          z.object({
            linuxDriver: z.string(),
            configuration: z.number(),
            interfaces: z.array(z.number()),
          }),
        ),
      }),
    ),
  }),
);
export type FurtherFacts = z.infer<typeof furtherSchema>[string];

export interface Fixture<T> {
  readonly name: string;
  readonly text: string;
  readonly facts: T;
}

function read(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, folder)), 'utf8');
}

/** One device each, with its facts in a file beside it. */
export const fixtures: readonly Fixture<Facts>[] = readdirSync(fileURLToPath(folder))
  .filter((file) => file.endsWith('.txt'))
  .map((file) => file.slice(0, -'.txt'.length))
  .map((name) => ({
    name,
    text: read(`${name}.txt`),
    facts: factsSchema.parse(JSON.parse(read(`${name}.json`))),
  }));

/** Bug reports with one or more devices; their sources are in `expected.json`. */
export const further: readonly Fixture<FurtherFacts>[] = Object.entries(
  furtherSchema.parse(JSON.parse(read('further/expected.json'))),
).map(([name, facts]) => ({ name, text: read(`further/${name}.txt`), facts }));

export function identifyText(text: string): IdentifyResult {
  return identify(new TextEncoder().encode(text), text);
}

/** The devices of a text that can be read. */
export function devicesOf(text: string): readonly IdentifiedDevice[] {
  const result = identifyText(text);
  if (!result.ok) throw new Error(result.problem);
  return result.devices;
}

export function idOf({ vendorId, productId }: IdentifiedDevice): string | null {
  if (vendorId === undefined || productId === undefined) return null;
  return [vendorId, productId].map((id) => id.toString(16).padStart(4, '0')).join(':');
}

/** What identification is about: driver, configuration, interfaces and quirks of every function of every device. */
export function outcomeOf(text: string): unknown {
  return devicesOf(text).map((device) => [
    idOf(device),
    device.functions.map(({ linuxDriver, configuration, interfaces, quirks }) => [
      linuxDriver,
      configuration,
      interfaces,
      quirks,
    ]),
  ]);
}
