import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The archive of Electron for one platform, to say what a fetch costs; they differ by some megabytes. */
const archiveMegabytes = 120;

/**
 * Whether a window can be shown.
 * @param {NodeJS.Platform} platform
 * @param {NodeJS.ProcessEnv} environment
 */
export function hasDisplay(platform, environment) {
  if (platform === 'win32') return true;
  if (platform === 'darwin') return !environment.SSH_CONNECTION;
  return Boolean(environment.DISPLAY || environment.WAYLAND_DISPLAY);
}

/**
 * Electron's program: under ELECTRON_OVERRIDE_DIST_PATH, or where its package puts it once it is fetched.
 * @param {string} root
 * @param {NodeJS.ProcessEnv} environment
 * @returns {string | undefined}
 */
export function findElectron(root, environment) {
  const packageFolder = join(root, 'node_modules', 'electron');
  const named = environment.ELECTRON_OVERRIDE_DIST_PATH;
  let programPath = process.platform === 'win32' ? 'electron.exe' : 'electron';
  if (process.platform === 'darwin') programPath = 'Electron.app/Contents/MacOS/Electron';
  if (named) return existing(join(named, programPath));
  try {
    // Written last, so what it names is whole.
    const fetchedPath = readFileSync(join(packageFolder, 'path.txt'), 'utf8');
    return existing(join(packageFolder, 'dist', fetchedPath));
  } catch {
    return undefined;
  }
}

function existing(path) {
  return existsSync(path) ? path : undefined;
}

/**
 * Has Electron's own installer fetch its binary; the package itself does not contain it.
 *
 * The installer names Node 22.12 as its least, for it loads a module by `require`; Node 20 can do that since 20.19, which
 * is the least that Queuescope runs on.
 *
 * @param {string} root
 * @param {{ deadlineMs: number, print: (line: string) => void }} options
 * @returns {Promise<string | undefined>} why it failed; undefined if it did not
 */
export async function fetchElectron(root, { deadlineMs, print }) {
  const packageFolder = join(root, 'node_modules', 'electron');
  const installer = join(packageFolder, 'install.js');
  if (!existsSync(installer)) return 'Electron is not installed';
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
  print(
    `Fetching Electron ${version} for its window, once: about ${archiveMegabytes} MB, for at most ${deadlineMs / 1000} s.`,
  );
  const child = spawn(process.execPath, [installer], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8');
  child.stderr.on('data', (text) => (errors = (errors + text).slice(0, 10_000)));
  let late = false;
  const deadline = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, deadlineMs);
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(-1));
    child.once('close', (exitCode) => resolve(exitCode));
  });
  clearTimeout(deadline);
  if (late) return `Electron could not be fetched in ${deadlineMs / 1000} s`;
  if (code === 0) return undefined;
  const firstLine = errors.split('\n').find((line) => line.trim() !== '') ?? `exit code ${code}`;
  return `Electron could not be fetched (${firstLine.trim().replace(/^\w*Error: /, '')})`;
}

/** An Electron that fails sooner than this never had a window: a library, or its sandbox, is missing. */
const defaultStartUpMs = 15_000;

/**
 * Runs Electron until it ends.
 * @param {string} program
 * @param {string[]} args
 * @param {{ startUpMs?: number }} [options]
 * @returns {Promise<{ code: number } | { failed: string }>} its exit code, or why it never had a window
 */
export async function runElectron(program, args, { startUpMs = defaultStartUpMs } = {}) {
  const environment = { ...process.env };
  delete environment.ELECTRON_RUN_AS_NODE;
  const startedAtMs = Date.now();
  const child = spawn(program, args, { stdio: 'inherit', env: environment });
  let asked = false;
  const forward = (signal) => {
    asked = true;
    child.kill(signal);
  };
  process.on('SIGINT', forward);
  process.on('SIGTERM', forward);
  const ended = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  process.off('SIGINT', forward);
  process.off('SIGTERM', forward);
  const early = Date.now() - startedAtMs < startUpMs;
  if (ended !== 0 && !asked && early) return { failed: String(ended) };
  return { code: typeof ended === 'number' ? ended : 1 };
}
