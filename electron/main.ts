import * as electron from 'electron';
import { fileURLToPath } from 'node:url';
import { createPinoLog, logLevelOf } from '../src/hosts/pino-log.ts';
import { timerSchedule } from '../src/hosts/web/timer-schedule.ts';
import { runShell } from './shell.ts';

/** Entry of Electron's main process, built to `dist/electron`. */

const built = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Not awaited here: Electron is not ready before its entry module is done.
void runShell({
  electron,
  preload: built('./preload.cjs'),
  rendererFolder: built('../renderer/'),
  engineScript: built('../node/engine-process.js'),
  platform: process.platform,
  schedule: timerSchedule,
  log: createPinoLog(logLevelOf(process.env['QUEUESCOPE_LOG'])),
});
