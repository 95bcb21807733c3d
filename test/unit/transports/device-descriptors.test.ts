import { describe, expect, test } from 'vitest';
import { inferSpeed, parseDeviceDescriptors } from '../../../src/transports/device-descriptors.ts';
import { configurationBytesFromLibusb } from '../../../src/transports/libusb-descriptors.ts';
import { libusbView } from './libusb-view.ts';
import { ncmGadgetDescriptors } from './ncm-gadget.ts';

const device = ncmGadgetDescriptors.subarray(0, 18);
const configuration = ncmGadgetDescriptors.subarray(18);

function withValue(value: number): Uint8Array {
  const bytes = Uint8Array.from(configuration);
  bytes[5] = value;
  return bytes;
}

describe('a dump of descriptors', () => {
  test('has every configuration', () => {
    const parsed = parseDeviceDescriptors(Buffer.concat([device, withValue(1), withValue(2)]), 'high');
    expect(parsed?.descriptor.productId).toBe(0x0103);
    expect(parsed?.configurations.map(({ value }) => value)).toEqual([1, 2]);
    expect(parsed?.problems).toEqual([]);
  });

  test('in which a configuration was cut behind a descriptor, as Linux does: the next one is found all the same', () => {
    const cut = withValue(1).subarray(0, 9 + 8 + 9 + 5 + 5 + 13 + 6);
    const parsed = parseDeviceDescriptors(Buffer.concat([device, cut, withValue(2)]), 'high');
    expect(parsed?.configurations.map(({ value }) => value)).toEqual([2]);
    expect(parsed?.problems).toHaveLength(1);
  });

  test('that is no such thing', () => {
    expect(parseDeviceDescriptors(configuration, 'high')).toBeUndefined();
    expect(parseDeviceDescriptors(new Uint8Array(0), 'high')).toBeUndefined();
  });

  test.each(Array.from({ length: ncmGadgetDescriptors.length }, (_, length) => length))(
    'cut after %i bytes is dealt with',
    (length) => {
      const parsed = parseDeviceDescriptors(ncmGadgetDescriptors.subarray(0, length), 'high');
      expect(parsed === undefined).toBe(length < 18);
    },
  );

  test('of garbage ends', () => {
    for (let fill = 0; fill < 256; fill++) {
      const garbage = Buffer.concat([device, new Uint8Array(300).fill(fill)]);
      expect(parseDeviceDescriptors(garbage, 'high')?.configurations).toEqual([]);
    }
  });
});

test("libusb's view of a configuration has all of its bytes", () => {
  expect(configurationBytesFromLibusb(libusbView(configuration))).toEqual(Uint8Array.from(configuration));
});

describe('the speed, where the system does not tell it', () => {
  function speedWithBulk(packetSize: number, usbVersion = 0x0200): string {
    const bytes = Uint8Array.from(ncmGadgetDescriptors);
    bytes[3] = usbVersion >>> 8;
    // The two bulk endpoints are the last descriptors.
    for (const position of [bytes.length - 14, bytes.length - 7]) {
      bytes[position + 4] = packetSize & 0xff;
      bytes[position + 5] = packetSize >>> 8;
    }
    const parsed = parseDeviceDescriptors(bytes, 'unknown');
    if (parsed === undefined) throw new Error('the fixture is broken');
    return inferSpeed(parsed.descriptor, parsed.configurations);
  }

  test.each([
    [64, 'full'],
    [512, 'high'],
    [1024, 'super'],
  ])('bulk packets of %i bytes: %s', (packetSize, speed) => {
    expect(speedWithBulk(packetSize)).toBe(speed);
  });

  test('without endpoints: unknown, unless the default endpoint is that of SuperSpeed', () => {
    const bytes = Uint8Array.from(device);
    const plain = parseDeviceDescriptors(bytes, 'unknown');
    expect(plain && inferSpeed(plain.descriptor, [])).toBe('unknown');
    bytes[3] = 3;
    bytes[7] = 9;
    const fast = parseDeviceDescriptors(bytes, 'unknown');
    expect(fast && inferSpeed(fast.descriptor, [])).toBe('super');
  });
});
