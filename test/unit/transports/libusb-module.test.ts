import { describe, expect, test } from 'vitest';
import { libusbLoader } from '../../../src/transports/libusb-module.ts';

/** The real package, as far as it goes without a device. */
const loaded = await libusbLoader.load().catch((error: unknown) => String(error));
const reason =
  typeof loaded === 'string' ? loaded : loaded.INIT_ERROR === 0 ? '' : `error ${loaded.INIT_ERROR}`;

describe.skipIf(reason !== '')(`the package usb${reason === '' ? '' : ` (skipped: ${reason})`}`, () => {
  test('is the version whose sources were read', async () => {
    const { default: manifest } = await import('usb/package.json', { with: { type: 'json' } });
    expect(manifest.version).toBe('2.18.0');
  });

  test('has every call that is used, and one more instance of itself', async () => {
    const first = await libusbLoader.load();
    const second = await libusbLoader.loadAgain();
    expect(second).not.toBe(first);
    expect(await libusbLoader.load()).toBe(first);
    for (const module of [first, second]) {
      expect(module.INIT_ERROR).toBe(0);
      expect(Array.isArray(module.getDeviceList())).toBe(true);
      const device = prototypeOf(module, 'Device');
      for (const call of [
        '__open',
        '__close',
        '__getConfigDescriptor',
        '__getAllConfigDescriptors',
        '__setConfiguration',
        '__claimInterface',
        '__releaseInterface',
        '__setInterface',
        '__clearHalt',
        '__isKernelDriverActive',
        '__detachKernelDriver',
        '__attachKernelDriver',
        'reset',
      ]) {
        expect(device, call).toHaveProperty(call, expect.any(Function));
      }
      const transfer = prototypeOf(module, 'Transfer');
      expect(transfer).toHaveProperty('submit', expect.any(Function));
      expect(transfer).toHaveProperty('cancel', expect.any(Function));
    }
  });

  test('can be listened to and left', async () => {
    const usb = await libusbLoader.load();
    let heard = 0;
    const listener = (): void => {
      heard++;
    };
    const emit = (): unknown => Reflect.get(usb, 'emit').call(usb, 'attach', undefined);
    usb.on('attach', listener);
    usb.unrefHotplugEvents();
    emit();
    usb.off('attach', listener);
    emit();
    expect(heard).toBe(1);
  });
});

function prototypeOf(module: object, name: string): unknown {
  const value: unknown = Reflect.get(module, name);
  return typeof value === 'function' ? value.prototype : undefined;
}
