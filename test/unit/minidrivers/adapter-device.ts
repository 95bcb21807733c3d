import type { BindContext, MinidriverName } from '../../../src/usbnet/minidriver.ts';
import type { DeviceRequest, UsbDevice } from '../../../src/usbnet/transport.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { type Answer, contextFor } from './conversation.ts';

/** One vendor-specific interface with interrupt endpoint 0x81, bulk IN 0x82 and bulk OUT 0x03, as ASIX' chips have it. */
export function adapterDevice(vendorId: number, productId: number, maxPacket: 512 | 1024 = 512): UsbDevice {
  return {
    speed: maxPacket === 1024 ? 'super' : 'high',
    descriptor: { ...deviceDescriptor, deviceClass: 0xff, vendorId, productId },
    configuration: configuration([
      altSetting(
        0,
        0,
        [0xff, 0xff, 0],
        [
          endpoint(0x81, 'interrupt', 8, { interval: 11 }),
          endpoint(0x82, 'bulk', maxPacket),
          endpoint(0x03, 'bulk', maxPacket),
        ],
      ),
    ]),
  };
}

export function adapterContext(device: UsbDevice, driver: MinidriverName): BindContext {
  const context = contextFor(device, driver);
  return { ...context, match: { ...context.match, controlInterface: 0, dataInterface: 0 } };
}

/** Answers by the beginning of the step in words; what none fits gets zeros, as many as are asked for. */
export function registers(
  special: Readonly<Record<string, Answer>> = {},
): (request: DeviceRequest, words: string) => Answer {
  return (request, words) => {
    for (const [beginning, answer] of Object.entries(special)) {
      if (words.startsWith(beginning)) return answer;
    }
    return request.kind === 'control-in' ? new Uint8Array(request.length) : 'completed';
  };
}
