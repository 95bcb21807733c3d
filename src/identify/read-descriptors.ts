import { usbIdOf } from '../minidrivers/described-device.ts';
import { assembleDevices } from './device-assembly.ts';
import { findHexDumps, readHexDump } from './hex-dump.ts';
import type { PrintedText } from './printed-descriptor.ts';
import { looksLikeDescriptors, readDescriptorBytes } from './read-descriptor-bytes.ts';
import type { ReadDevice } from './read-device.ts';
import { readKernelLog } from './read-kernel-log.ts';
import { readLsusb } from './read-lsusb.ts';
import { readPositions } from './read-positions.ts';
import { readUsbDevices } from './read-usb-devices.ts';
import { readUsbTree } from './read-usb-tree.ts';
import type { TextLine } from './text-line.ts';
import { textLines } from './text-lines.ts';

/** What came of reading an input: devices, or what stopped it and where. */
export type ReadResult =
  | { readonly ok: true; readonly positions: 'lines' | 'bytes'; readonly devices: readonly ReadDevice[] }
  | {
      readonly ok: false;
      /** One sentence without a full stop. */
      readonly problem: string;
      readonly positions: 'lines' | 'bytes';
      /** The line, from 1, or the byte, from 0, that could not be made sense of. */
      readonly position: number;
    };

/**
 * Reads the descriptors of devices, whatever form they have: what the kernel keeps as bytes, or text with `lsusb -v`,
 * `usb-devices`, the kernel's usb/devices file or a hexadecimal dump in it, several of them mixed, in a mail or not.
 * Never throws.
 * @param text of the same bytes
 */
export function readDescriptors(bytes: Uint8Array, text: string): ReadResult {
  if (looksLikeDescriptors(bytes)) return readBytes(bytes);
  const lines = textLines(text);
  const dump = readHexDump(lines);
  if (dump !== undefined && looksLikeDescriptors(dump)) return readBytes(dump);
  const result = readText(lines);
  if (result.ok) return result;
  const dumps = findHexDumps(lines).filter(looksLikeDescriptors);
  return dumps.length === 0 ? result : readBytes(Uint8Array.from(dumps.flatMap((found) => [...found])));
}

function readBytes(bytes: Uint8Array): ReadResult {
  const result = readDescriptorBytes(bytes);
  return result.ok
    ? { ...result, positions: 'bytes' }
    : { ok: false, positions: 'bytes', problem: result.problem, position: result.offset };
}

function readText(lines: readonly TextLine[]): ReadResult {
  const records = readUsbDevices(lines);
  const listing = hasInterfaces(records) ? readLsusb(lines) : readListing(lines);
  // What shows drivers only helps where nobody has shown descriptors.
  const bound = hasInterfaces(records) || hasInterfaces(listing) ? nothing : readBoundDrivers(lines);
  const devices = merged(
    assembleDevices(listing, { mayShowOnlyWhatIsInUse: false }),
    assembleDevices(hasInterfaces(bound) || records.descriptors.length === 0 ? bound : records, {
      mayShowOnlyWhatIsInUse: true,
    }),
  );
  const useful = devices.filter(
    ({ hasIds, described }) =>
      hasIds || described.configurations.some(({ interfaces }) => interfaces.length > 0),
  );
  return useful.length > 0
    ? { ok: true, positions: 'lines', devices: useful }
    : { ok: false, positions: 'lines', ...explainNothing(lines, devices) };
}

const nothing: PrintedText = { descriptors: [], warnings: [] };

function readBoundDrivers(lines: readonly TextLine[]): PrintedText {
  const tree = readUsbTree(lines);
  return hasInterfaces(tree) ? tree : readKernelLog(lines);
}

/** By the names of fields or, where they tell of no interface, by the order of numbers. */
function readListing(lines: readonly TextLine[]): PrintedText {
  const byName = readLsusb(lines);
  if (hasInterfaces(byName)) return byName;
  const byPosition = readPositions(lines);
  return hasInterfaces(byPosition) ? withHeadings(byPosition, byName) : byName;
}

function hasInterfaces({ descriptors }: PrintedText): boolean {
  return descriptors.some(({ kind }) => kind === 'interface');
}

/** The line that names a device is known in any language. */
function withHeadings(text: PrintedText, listing: PrintedText): PrintedText {
  const headings = listing.descriptors.filter(({ kind }) => kind === 'heading');
  return {
    descriptors: [...headings, ...text.descriptors].sort((a, b) => a.line - b.line),
    warnings: text.warnings,
  };
}

/**
 * Reports often show a device twice, once as lsusb prints it and once as the kernel does. lsusb tells more of it, the
 * kernel which configuration and drivers it has; a device that is only named beside one with descriptors is left out.
 */
function merged(listed: readonly ReadDevice[], recorded: readonly ReadDevice[]): readonly ReadDevice[] {
  const devices: ReadDevice[] = [];
  const left = new Set(recorded);
  const recordedById = new Map<string, ReadDevice[]>();
  for (const device of recorded) {
    const id = idOf(device);
    const sameId = id === undefined ? undefined : recordedById.get(id);
    if (sameId !== undefined) sameId.push(device);
    else if (id !== undefined) recordedById.set(id, [device]);
  }
  for (const device of listed) {
    const other = recordedById.get(idOf(device) ?? '')?.shift();
    if (other === undefined) devices.push(device);
    else {
      left.delete(other);
      devices.push(isBare(device) || other.complete > device.complete ? other : withFacts(device, other));
    }
  }
  const all = [...devices, ...left];
  const described = new Set(all.filter((device) => !isBare(device)).map(idOf));
  return all
    .filter((device) => !isBare(device) || !device.hasIds || !described.has(idOf(device)))
    .sort((a, b) => a.position - b.position);
}

function idOf({ hasIds, described }: ReadDevice): string | undefined {
  return hasIds ? usbIdOf(described) : undefined;
}

function isBare({ described }: ReadDevice): boolean {
  return described.configurations.length === 0;
}

function withFacts(device: ReadDevice, other: ReadDevice): ReadDevice {
  return { ...device, activeConfiguration: device.activeConfiguration ?? other.activeConfiguration };
}

const shownCharacters = 60;
/** What a line says that may have been meant as part of a listing. */
const usbWords = /\b(?:Bus \d|ID [\da-f]{4}:|Descriptor|b[A-Z]\w+|id(?:Vendor|Product)|If#|ProdID|Driver=)/;

function explainNothing(
  lines: readonly TextLine[],
  devices: readonly ReadDevice[],
): { readonly problem: string; readonly position: number } {
  const [device] = devices;
  if (device !== undefined) {
    return {
      problem: 'a device begins here, but neither its ids nor any of its interfaces can be read',
      position: device.position,
    };
  }
  const written = lines.filter(({ text }) => text.trim() !== '');
  // A letter's first words are not what stopped it.
  const line = written.find(({ text }) => usbWords.test(text)) ?? written[0];
  if (line === undefined) return { problem: 'there is nothing in it', position: 1 };
  return {
    problem:
      `"${line.text.slice(0, shownCharacters)}" is neither from lsusb -v nor from usb-devices,` +
      ' and so is nothing else in it',
    position: line.number,
  };
}
