import { languageEnglishUnitedStates, parseStringDescriptor } from '../wire/usb-string.ts';
import { descriptorTypes } from '../wire/usb-descriptor.ts';
import type { LibusbDevice, LibusbModule } from './libusb-module.ts';
import { libusbTransferTypes } from './libusb-status.ts';

export interface DeviceStrings {
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  readonly serialNumber: string | undefined;
}

const getDescriptor = 6;
const deviceToHost = 0x80;
const setupLength = 8;
const maxStringLength = 255;
/** Devices that don't answer are not waited for long: their name is a convenience. */
const timeoutMs = 250;

/** Asks a device for its names, opening it for that long. @throws LibusbError if it can't be opened */
export async function readDeviceStrings(module: LibusbModule, handle: LibusbDevice): Promise<DeviceStrings> {
  const { iManufacturer, iProduct, iSerialNumber } = handle.deviceDescriptor;
  handle.__open();
  try {
    return {
      manufacturer: await readString(module, handle, iManufacturer),
      product: await readString(module, handle, iProduct),
      serialNumber: await readString(module, handle, iSerialNumber),
    };
  } finally {
    handle.__close();
  }
}

function readString(module: LibusbModule, handle: LibusbDevice, index: number): Promise<string | undefined> {
  if (index === 0) return Promise.resolve(undefined);
  const buffer = Buffer.alloc(setupLength + maxStringLength);
  buffer[0] = deviceToHost;
  buffer[1] = getDescriptor;
  buffer[2] = index;
  buffer[3] = descriptorTypes.string;
  buffer.writeUInt16LE(languageEnglishUnitedStates, 4);
  buffer.writeUInt16LE(maxStringLength, 6);
  return new Promise((resolve) => {
    const transfer = new module.Transfer(
      handle,
      0,
      libusbTransferTypes.control,
      timeoutMs,
      (error, _buffer, actualLength) => {
        resolve(
          error === undefined
            ? parseStringDescriptor(buffer.subarray(setupLength, setupLength + actualLength))
            : undefined,
        );
      },
    );
    transfer.submit(buffer);
  });
}
