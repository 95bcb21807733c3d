import { ReadyFiles } from '../linux/ready-files.ts';
import { loadSystemCalls, type SystemCalls } from '../linux/system-calls.ts';
import { monotonicClock } from './monotonic-clock.ts';

/** The system calls of Linux, and what waits for the files that they work on. */
export interface LinuxFiles {
  readonly calls: SystemCalls;
  readonly files: ReadyFiles;
}

/** @throws if this is no Linux with a C library */
export function openLinuxFiles(): LinuxFiles {
  const calls = loadSystemCalls();
  return { calls, files: new ReadyFiles(calls, () => monotonicClock.nowUs()) };
}
