import { expect, test } from 'vitest';
import { linkProblems } from '../../../src/engine/link-problems.ts';
import { deviceDescriptor } from '../usbnet/hand-made-device.ts';

const idsOf = (
  id: string,
  speed: 'full' | 'high' | 'super',
  usbVersion: number,
  isSuperSpeedCapable?: boolean,
): readonly string[] =>
  linkProblems({
    id,
    speed,
    descriptor: { ...deviceDescriptor, usbVersion },
    ...(isSuperSpeedCapable === undefined ? {} : { isSuperSpeedCapable }),
  }).map((problem) => `${problem.severity} ${problem.id}`);

test('a device at the speed that it was made for, at a port of the machine: nothing', () => {
  expect(idsOf('usb:2-1', 'super', 0x0320, true)).toEqual([]);
  expect(idsOf('usb:1-3', 'high', 0x0200)).toEqual([]);
  expect(idsOf('usb:1-3', 'high', 0x0210, false)).toEqual([]);
});

test.each([
  [0x0210, true],
  [0x0300, undefined],
] as const)('USB 3 at the speed of USB 2 (bcdUSB %i, BOS says %s)', (usbVersion, capable) => {
  expect(idsOf('usb:1-3', 'high', usbVersion, capable)).toEqual(['warning usb2-fallback']);
});

test('full speed', () => {
  expect(idsOf('usb:1-3', 'full', 0x0210, true)).toEqual(['warning full-speed']);
});

test('hubs in between', () => {
  expect(idsOf('usb:1-1.4', 'high', 0x0200)).toEqual(['info behind-hub']);
  expect(
    linkProblems({ id: 'usb:1-1.4.2', speed: 'super', descriptor: deviceDescriptor })[0]?.message,
  ).toMatch(/behind 2 hubs \(port 1\.4\.2\)/);
});
