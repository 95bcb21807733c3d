import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fetchElectron, findElectron, hasDisplay, runElectron } from './electron-binary.mjs';
import { ensureBuilt } from './ensure-built.mjs';
import { runQueuescope } from './run-queuescope.mjs';

/**
 * `npm start`: opens the window where Electron is there or can be fetched; elsewhere serves the same page to a browser and
 * says why. `npm start -- --browser` chooses the browser. Other arguments go to whichever runs.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const fetchDeadlineMs = 120_000;
const mainScript = join(root, 'dist', 'electron', 'main.js');

const browserOption = '--browser';
const args = process.argv.slice(2).filter((argument) => argument !== browserOption);
const print = (line) => process.stdout.write(`${line}\n`);

/** Where Electron's program is, or why there is no window. */
async function findWindow() {
  if (process.argv.includes(browserOption)) return { reason: 'the browser was asked for' };
  if (!hasDisplay(process.platform, process.env)) return { reason: 'there is no display' };
  if (process.platform === 'linux' && process.getuid() === 0) {
    return { reason: "Electron's sandbox does not run as root" };
  }
  if (!existsSync(mainScript)) return { reason: 'the window is not built' };
  const present = findElectron(root, process.env);
  if (present !== undefined) return { program: present };
  if (process.env.ELECTRON_OVERRIDE_DIST_PATH) {
    return { reason: 'ELECTRON_OVERRIDE_DIST_PATH names a folder without Electron' };
  }
  const reason = await fetchElectron(root, { deadlineMs: fetchDeadlineMs, print });
  if (reason !== undefined) return { reason };
  const program = findElectron(root, process.env);
  return program === undefined ? { reason: 'the fetched Electron has no program' } : { program };
}

async function start() {
  if (!(await ensureBuilt(root, ['renderer', 'node', 'electron']))) {
    process.exitCode = 1;
    return;
  }
  const window = await findWindow();
  let { reason } = window;
  if (window.program !== undefined) {
    const ended = await runElectron(window.program, [mainScript, ...args]);
    if (ended.failed === undefined) {
      process.exitCode = ended.code;
      return;
    }
    reason = `Electron does not start here (${ended.failed})`;
  }
  print(`No window, a browser instead: ${reason}.`);
  await runQueuescope(root, ['serve', '--open', ...args]);
}

await start();
