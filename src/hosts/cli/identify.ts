import { AppError, exitCodes } from '../../base/errors.ts';
import {
  type IdentifiedDevice,
  type IdentifiedFunction,
  identify as identifyDescriptors,
} from '../../identify/identify.ts';
import { formatUsbId } from '../../minidrivers/described-device.ts';
import type { Command } from './command.ts';
import { readBytes } from './files.ts';
import type { Output } from './output.ts';

export interface IdentifyOptions {
  /** "-" is standard input. */
  readonly file: string;
  readonly json: boolean;
}

/**
 * `queuescope identify FILE`: what the devices are whose descriptors the file has.
 * @throws AppError `bad-input` naming the line that could not be read
 */
export const identify: Command<IdentifyOptions> = async ({ output }, { file, json }) => {
  const bytes = await readBytes(file);
  const result = identifyDescriptors(bytes, decode(bytes));
  const name = file === '-' ? 'Standard input' : file;
  if (!result.ok) {
    throw new AppError('bad-input', `${name}, ${result.problem}`, {
      details: { file, position: result.position },
      remedy:
        'Print the descriptors of a device with one of these:\n  sudo lsusb -v -d VENDOR:PRODUCT\n  usb-devices',
    });
  }
  const { devices } = result;
  if (json) output.json({ devices });
  else printDevices(output, devices);
  return exitCodes.ok;
};

/** Text in UTF-8 or, as PowerShell writes it, UTF-16 with a mark; what is neither becomes replacement characters. */
function decode(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  return new TextDecoder().decode(bytes);
}

function printDevices(output: Output, devices: readonly IdentifiedDevice[]): void {
  for (const [i, device] of devices.entries()) {
    if (i > 0) output.line('');
    printDevice(output, device);
  }
}

function printDevice(output: Output, device: IdentifiedDevice): void {
  const { vendorId, productId, manufacturer, name, functions, warnings, advice, complete } = device;
  const id =
    vendorId === undefined || productId === undefined ? '????:????' : formatUsbId(vendorId, productId);
  output.line([id, manufacturer, name].filter((part) => part !== undefined).join(' '));
  if (functions.length === 0) output.line('  no network function');
  for (const found of functions) printFunction(output, found);
  output.line(`  ${advice}`);
  if (!complete) output.line('  The listing is not complete; what is missing may change the answer.');
  for (const warning of warnings) output.note(`${id}: ${warning}`);
}

function printFunction(output: Output, found: IdentifiedFunction): void {
  const { driver, linuxDriver, configuration, selected, interfaces, quirks, reason } = found;
  const what = found.function === 'wwan' ? 'modem' : 'Ethernet';
  const here = driver === null ? 'no minidriver' : `minidriver ${driver}`;
  const others = selected ? '' : ', which Linux does not choose by itself';
  output.line(`  ${what}: ${here}; in Linux: ${linuxDriver}`);
  output.line(
    `    interface${interfaces.length === 1 ? '' : 's'} ${interfaces.join(' and ')}` +
      ` of configuration ${configuration}${others}`,
  );
  if (quirks.length > 0) output.line(`    quirks: ${quirks.join(', ')}`);
  output.line(`    because ${reason}`);
}
