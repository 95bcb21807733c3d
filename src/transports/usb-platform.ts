/** The systems whose USB differs for a user. */
export type UsbPlatform = 'linux' | 'darwin' | 'win32' | 'other';

/** @param name Node's `process.platform` */
export function usbPlatform(name: NodeJS.Platform): UsbPlatform {
  return name === 'linux' || name === 'darwin' || name === 'win32' ? name : 'other';
}
