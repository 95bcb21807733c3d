import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { release } from 'node:os';
import { dirname } from 'node:path';
import type { Log } from '../../base/log.ts';
import { monotonicClock } from '../../engine/monotonic-clock.ts';
import { startLineProgram } from '../../observe/line-program.ts';
import { codeOf } from '../../observe/number-file.ts';
import { LibusbBus } from '../../transports/libusb-bus.ts';
import { usbPlatform } from '../../transports/usb-platform.ts';
import type { RunningEngine } from '../bootstrap.ts';
import { LinuxProbe } from './linux-facts.ts';
import type { Machine, RecordingsFolder } from './machine.ts';

/** Asks this machine about itself. Nothing is changed, and no device is taken from anyone. */
export async function readMachine({ engine, archive }: RunningEngine, log: Log): Promise<Machine> {
  const platform = usbPlatform(process.platform);
  const kernelRelease = release();
  const userId = process.getuid?.();
  const devices = await engine.devices();
  const failure = await new LibusbBus({ clock: monotonicClock, log, platform }).unavailable();
  const linux =
    platform === 'linux'
      ? new LinuxProbe({ environment: process.env, userId, startProgram: startLineProgram })
      : undefined;
  return {
    platform,
    surroundings: (await linux?.surroundings(kernelRelease)) ?? 'hardware',
    kernelRelease,
    nodeVersion: process.versions.node,
    isRoot: userId === 0,
    recordings: await readRecordingsFolder(archive.library.folder),
    usbLibraryFailure:
      failure === undefined ? undefined : { message: failure.message, remedy: failure.remedy },
    devices,
    linux: await linux?.facts(devices),
  };
}

/** The folder itself or, as it is made with the first recording, the nearest one above it that is there. */
export async function readRecordingsFolder(path: string): Promise<RecordingsFolder> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      const isFolder = (await stat(folder)).isDirectory();
      if (!isFolder) return { path, failureCode: 'ENOTDIR', freeBytes: 0 };
      await access(folder, constants.W_OK | constants.X_OK);
      const { bavail, bsize } = await statfs(folder);
      return { path, failureCode: undefined, freeBytes: bavail * bsize };
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'ENOENT' || folder === dirname(folder)) return { path, failureCode: code, freeBytes: 0 };
    }
  }
}
