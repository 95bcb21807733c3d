import { fileURLToPath } from 'node:url';
import { createEngine } from '../src/hosts/bootstrap.ts';
import { createPinoLog, logLevelOf } from '../src/hosts/pino-log.ts';
import { timerSchedule } from '../src/hosts/web/timer-schedule.ts';
import { type ParentPort, runEngineService } from './engine-service.ts';

/** Entry of the engine's process, an Electron utility process: a native crash in it does not take the window along. */

// Electron adds it to Node's `process` in utility processes.
const { parentPort } = process as unknown as { readonly parentPort: ParentPort };
const log = createPinoLog(logLevelOf(process.env['QUEUESCOPE_LOG']));

void runEngineService({
  parent: parentPort,
  createEngine: () =>
    createEngine({ host: 'electron', log, scriptFolder: fileURLToPath(new URL('.', import.meta.url)) }),
  exit: (code) => process.exit(code),
  schedule: timerSchedule,
  log,
});
