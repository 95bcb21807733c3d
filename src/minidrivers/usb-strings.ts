import { macAddressIsUsable, parseMacAddress } from '../wire/mac-address.ts';
import { descriptorTypes } from '../wire/usb-descriptor.ts';
import { languageEnglishUnitedStates, parseLanguageList, parseStringDescriptor } from '../wire/usb-string.ts';
import { controlIn, describeStatus, DriverError, type Procedure } from '../usbnet/procedure.ts';

const getDescriptor = 0x06;
const longestDescriptorBytes = 255;

/** Reads a string descriptor in the device's first language; undefined if there is none. */
export function* readString(index: number): Procedure<string | undefined> {
  if (index === 0) return undefined;
  const languages = yield* controlIn(
    'standard-device',
    getDescriptor,
    descriptorTypes.string << 8,
    0,
    longestDescriptorBytes,
  );
  const language = parseLanguageList(languages.data)?.[0] ?? languageEnglishUnitedStates;
  const answer = yield* controlIn(
    'standard-device',
    getDescriptor,
    (descriptorTypes.string << 8) | index,
    language,
    longestDescriptorBytes,
  );
  return answer.status === 'completed' ? parseStringDescriptor(answer.data) : undefined;
}

/**
 * Reads the MAC address that `iMACAddress` names: a string of exactly twelve hexadecimal digits. Undefined if it is none
 * that a station may have (a group, all zeros).
 * @throws DriverError if there is no such string or it is none; a device without an address can't be driven
 */
export function* readMacAddress(index: number): Procedure<Uint8Array | undefined> {
  const text = yield* readString(index);
  if (text === undefined) throw new DriverError('read the MAC address', `string ${index} is missing`);
  const address = parseMacAddress(text);
  if (address === undefined || text.length !== 12) {
    throw new DriverError('read the MAC address', `string ${index} is not twelve hexadecimal digits`);
  }
  return macAddressIsUsable(address) ? address : undefined;
}

/** Throws a DriverError for `stage` unless the status is good. */
export function requireCompleted(stage: string, status: Parameters<typeof describeStatus>[0]): void {
  if (status !== 'completed') throw new DriverError(stage, describeStatus(status), status);
}
