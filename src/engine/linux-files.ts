import { AppError } from '../base/errors.ts';
import { ReadyFiles } from '../linux/ready-files.ts';
import { loadSystemCalls, type SystemCalls } from '../linux/system-calls.ts';
import { monotonicClock } from './monotonic-clock.ts';

/** The system calls of Linux, and what waits for the files that they work on. */
export interface LinuxFiles {
  readonly calls: SystemCalls;
  readonly files: ReadyFiles;
}

/** @throws AppError `device-failed`: this is no Linux, or koffi has no binary for this machine */
export function openLinuxFiles(): LinuxFiles {
  let calls: SystemCalls;
  try {
    calls = loadSystemCalls();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AppError('device-failed', `system calls cannot be made (${reason})`, {
      remedy: 'Install the program again without leaving out optional dependencies: npm ci',
      cause: error,
    });
  }
  return { calls, files: new ReadyFiles(calls, () => monotonicClock.nowUs()) };
}
