import type { Problem } from '../contract/problem.ts';
import type { UsbBusDevice } from '../transports/usb-bus.ts';

const usb3 = 0x0300;
const portPath = /^usb:\d+-(\d+(?:\.\d+)+)$/;

type Plugged = Pick<UsbBusDevice, 'id' | 'speed' | 'descriptor' | 'isSuperSpeedCapable'>;

/**
 * What the way between the host and a device costs it: a USB 3 device that has fallen back to USB 2 (a cable, a port, a hub
 * without USB 3, or dirt), full speed, a hub in between.
 */
export function linkProblems({ id, speed, descriptor, isSuperSpeedCapable }: Plugged): readonly Problem[] {
  const problems: Problem[] = [];
  const isUsb3 = isSuperSpeedCapable === true || descriptor.usbVersion >= usb3;
  if (speed === 'low' || speed === 'full') {
    problems.push({
      id: 'full-speed',
      severity: 'warning',
      message: `The device runs at ${speed === 'full' ? '12' : '1.5'} Mbit/s, the slowest that USB has.`,
      remedy: 'Try another cable, and a port of the machine itself.',
    });
  } else if (speed === 'high' && isUsb3) {
    problems.push({
      id: 'usb2-fallback',
      severity: 'warning',
      message: 'A USB 3 device runs at the speed of USB 2 (480 Mbit/s).',
      remedy: 'Use a port and a cable for USB 3; a plug that is pushed in slowly may have this effect too.',
    });
  }
  const ports = portPath.exec(id)?.[1];
  if (ports !== undefined) {
    const hubs = ports.split('.').length - 1;
    problems.push({
      id: 'behind-hub',
      severity: 'info',
      message:
        `The device is behind ${hubs === 1 ? 'a hub' : `${hubs} hubs`} (port ${ports}),` +
        ' and shares its speed, and its power, with what else is there.',
    });
  }
  return problems;
}
