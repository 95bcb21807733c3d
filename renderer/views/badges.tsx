import type { Device } from '../../src/contract/device.ts';
import { hint } from '../ui/hint.tsx';
import { modeWords, speedWords, usbIds } from './device-words.ts';

/** What a device is, in a row of small words. */
export function Badges({ device }: { readonly device: Device }) {
  const ids = usbIds(device);
  const speed = speedWords[device.speed];
  const mode = modeWords[device.mode];
  return (
    <span class="badges">
      {ids === undefined ? null : <span class="badge mono">{ids}</span>}
      {speed === undefined ? null : (
        <span class="badge" {...hint(speed.meaning)}>
          {speed.text}
        </span>
      )}
      <span class={`badge badge-${device.mode}`} {...hint(mode.meaning)}>
        {mode.text}
      </span>
      {device.minidriver === undefined ? null : (
        <span class="badge mono" {...hint(device.reason ?? `Driven by the minidriver ${device.minidriver}.`)}>
          {device.minidriver}
        </span>
      )}
      {device.kernelDriver === undefined ? null : (
        <span class="badge mono" {...hint(`Driven by the kernel’s ${device.kernelDriver}.`)}>
          {device.kernelDriver}
        </span>
      )}
    </span>
  );
}
