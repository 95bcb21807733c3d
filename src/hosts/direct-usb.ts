import type { Log } from '../base/log.ts';
import { openLinuxFiles, type LinuxFiles } from '../engine/linux-files.ts';

/**
 * What reaches USB devices without libusb, where that is possible: Linux on a 64-bit little-endian machine. The environment
 * variable `QUEUESCOPE_USB=libusb` turns it off.
 * @returns undefined: through libusb
 */
export function directUsb(environment: NodeJS.ProcessEnv, log: Log): LinuxFiles | undefined {
  const isPossible = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
  if (!isPossible || environment['QUEUESCOPE_USB'] === 'libusb') return undefined;
  try {
    return openLinuxFiles();
  } catch (error) {
    log.log('info', 'USB devices are driven through libusb', { reason: String(error) });
    return undefined;
  }
}
