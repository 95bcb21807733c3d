import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { networkInterfaces, release, uptime } from 'node:os';
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import type { EngineApi } from '../contract/engine-api.ts';
import { Engine } from '../engine/engine.ts';
import { openLinuxFiles, type LinuxFiles } from '../engine/linux-files.ts';
import { monotonicClock } from '../engine/monotonic-clock.ts';
import { RemoteSource } from '../engine/remote-source.ts';
import { NetdevSource } from '../engine/netdev-source.ts';
import { SimSource } from '../engine/sim-source.ts';
import { SleepWatch } from '../engine/sleep-watch.ts';
import { UsbSource } from '../engine/usb-source.ts';
import { defaultJournalFolder, LimitsJournal } from '../observe/limits-journal.ts';
import { startLineProgram } from '../observe/line-program.ts';
import { NetdevFiles } from '../observe/netdev-files.ts';
import { defaultRecordingsFolder } from '../recording/recordings-folder.ts';
import { LibusbBus } from '../transports/libusb-bus.ts';
import { usbPlatform } from '../transports/usb-platform.ts';
import { FileArchive } from './archive.ts';
import { version } from './version.ts';

export interface BootstrapOptions {
  readonly host: 'electron' | 'web' | 'cli';
  readonly log: Log;
  /** Folder of the bundled scripts (`dist/node`); the recording worker is looked for there. */
  readonly scriptFolder: string;
  /** Where recordings go; undefined: the user's documents. */
  readonly recordingsFolder?: string;
}

export interface RunningEngine {
  readonly engine: Engine;
  readonly api: EngineApi;
  readonly archive: FileArchive;
  /** Gives every device back and closes every recording. */
  close(): Promise<void>;
  /** The host is about to sleep, or awake again. Who is not told of it notices it a second after waking (Linux). */
  handlePower(change: 'suspend' | 'resume'): void;
}

/** The kernel's own interfaces; only Linux shows what happens in them. */
function netdevSource(log: Log): NetdevSource {
  return new NetdevSource(
    {
      files: new NetdevFiles(),
      journal: new LimitsJournal(defaultJournalFolder(process.env, process.getuid?.())),
      startProgram: startLineProgram,
      kernelRelease: release(),
      addressesOf: (netdev) =>
        (networkInterfaces()[netdev] ?? []).flatMap(({ family, cidr }) =>
          family === 'IPv4' && cidr !== null ? [cidr] : [],
        ),
      wallClockUs: () => Date.now() * 1000,
    },
    monotonicClock,
    log,
  );
}

/**
 * What reaches USB devices without libusb, where that is possible: Linux on a 64-bit little-endian machine. The environment
 * variable `QUEUESCOPE_USB=libusb` turns it off.
 */
function directUsb(environment: NodeJS.ProcessEnv, log: Log): LinuxFiles | undefined {
  const isPossible = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
  if (!isPossible || environment['QUEUESCOPE_USB'] === 'libusb') return undefined;
  try {
    return openLinuxFiles();
  } catch (error) {
    log.log('info', 'USB devices are driven through libusb', { reason: String(error) });
    return undefined;
  }
}

/** The only place where the parts are put together: every host (window, browser, command line) starts here. */
export async function createEngine(options: BootstrapOptions): Promise<RunningEngine> {
  const workerScript = join(options.scriptFolder, 'recording-worker.js');
  const archive = new FileArchive({
    folder: options.recordingsFolder ?? defaultRecordingsFolder(),
    workerScript: existsSync(workerScript) ? workerScript : undefined,
  });
  // What a killed process left behind is repaired before anyone asks for it. A single command has no time for that.
  if (options.host !== 'cli') archive.library.recoverAll();
  // A single command looks once.
  const remote = new RemoteSource({
    clock: monotonicClock,
    log: options.log,
    watch: options.host !== 'cli',
  });
  const linux = directUsb(process.env, options.log);
  const engine = new Engine({
    sources: [
      new UsbSource(
        new LibusbBus({
          clock: monotonicClock,
          log: options.log,
          platform: usbPlatform(process.platform),
          usbfs: linux,
        }),
        monotonicClock,
        options.log,
        linux,
      ),
      ...(process.platform === 'linux' ? [netdevSource(options.log)] : []),
      remote,
      new SimSource(monotonicClock, options.log),
    ],
    remote,
    archive,
    version,
    host: options.host,
    platform: `${process.platform} ${process.arch}`,
    wallClock: () => new Date().toISOString(),
    newSessionId: () => randomBytes(8).toString('hex'),
    newSeed: () => randomInt(2 ** 31),
    log: options.log,
  });
  const sleepWatch = new SleepWatch({
    sinceBootMs: () => uptime() * 1000,
    awakeMs: () => performance.now(),
  });
  sleepWatch.onWake((sleptMs) => engine.handleWake(sleptMs));
  return {
    engine,
    api: engine,
    archive,
    close: () => {
      sleepWatch.close();
      return engine.close();
    },
    handlePower: (change) => {
      // From now on it is known for certain.
      sleepWatch.close();
      if (change === 'suspend') engine.handleSuspend();
      else engine.handleWake(undefined);
    },
  };
}
