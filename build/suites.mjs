import { spawnSync } from 'node:child_process';
import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The test suites as data, in the order in which they run: what each one runs, what it needs of the machine, and how a
 * person gets that. `build/run-tests.mjs` runs them.
 *
 * A need answers with what it found (environment variables for the tests) or with what is missing and the command that
 * provides it. Nothing here installs anything.
 *
 * @typedef {{ environment?: Record<string, string> } | { missing: string, provide: string }} Finding
 * @typedef {(root: string) => Finding} Need
 * @typedef {{ name: string, package: string, bin?: string, args: string[] }} Step a package's program, run in the root
 * @typedef {{
 *   name: string,
 *   steps?: (root: string) => Step[],
 *   folder?: string,
 *   vitestArgs?: string[],
 *   alone?: string[],
 *   usesBuild?: boolean,
 *   needs?: Need[],
 *   limitMinutes: number,
 * }} Suite either `steps`, each counted as one test, or the vitest tests of a `folder`; its files that measure are `alone`
 *   on the machine, one after another, when the others are through; `limitMinutes` holds for each of the two
 */

/** @param {string} root */
function checkSteps(root) {
  const configurations = readdirSync(join(root, 'build')).filter((name) => /^tsconfig\..*\.json$/.test(name));
  return [
    ...configurations.sort().map((name) => ({
      name: `types ${name}`,
      package: 'typescript',
      bin: 'tsc',
      args: ['-p', `build/${name}`, '--pretty', 'false'],
    })),
    { name: 'lint', package: 'oxlint', args: ['--deny-warnings'] },
    { name: 'layout', package: 'prettier', args: ['--check', '--log-level', 'warn', '.'] },
    { name: 'dead code', package: 'knip', args: [] },
  ];
}

/** Whether a program is on PATH or where Debian keeps those of the administrator. */
function isInstalled(program) {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @type {Need} */
function chromium() {
  const named = process.env['CHROMIUM_PATH'];
  if (named !== undefined && named !== '') {
    return isExecutable(named)
      ? { environment: { CHROMIUM_PATH: named } }
      : {
          missing: `a Chromium at CHROMIUM_PATH (${named})`,
          provide: 'unset CHROMIUM_PATH, or let it name one',
        };
  }
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  for (const program of ['chromium', 'chromium-browser', 'google-chrome']) {
    const path = folders.map((folder) => join(folder, program)).find(isExecutable);
    if (path !== undefined) return { environment: { CHROMIUM_PATH: path } };
  }
  return { missing: 'a Chromium', provide: 'apt-get install chromium (or set CHROMIUM_PATH)' };
}

/** @type {Need} */
function linuxOnX64() {
  if (process.platform === 'linux' && process.arch === 'x64') return {};
  return { missing: 'Linux on x86-64', provide: 'run it on such a machine' };
}

/** The laboratory's programs on this machine, which the guest shares: program → Debian package. */
const laboratoryPrograms = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  cpio: 'cpio',
  modprobe: 'kmod',
  xz: 'xz-utils',
  setpriv: 'util-linux',
  ps: 'procps',
  ip: 'iproute2',
  ethtool: 'ethtool',
  iperf3: 'iperf3',
  irtt: 'irtt',
  usbip: 'usbip',
  usbipd: 'usbip',
  sqlite3: 'sqlite3',
  flent: 'flent',
};

/** @type {Need} */
function laboratoryTools() {
  const missing = Object.keys(laboratoryPrograms).filter((program) => !isInstalled(program));
  if (missing.length === 0) return {};
  const packages = new Set(missing.map((program) => laboratoryPrograms[program]));
  return { missing: missing.join(', '), provide: `apt-get install ${[...packages].join(' ')}` };
}

/**
 * Flent's figures and plots: Debian recommends what they need, and nobody has to follow.
 * @type {Need}
 */
function flentPlots() {
  const { stdout, stderr } = spawnSync('flent', ['--version'], { encoding: 'utf8' });
  if (`${stdout}${stderr}`.includes('Using matplotlib')) return {};
  return { missing: 'matplotlib, for flent', provide: 'apt-get install python3-matplotlib' };
}

/** @type {Need} */
function laboratoryKernel(root) {
  const found = spawnSync('bash', ['-c', '. test/lab/vm/kernel.sh; lab_kernel_version'], { cwd: root });
  if (found.status === 0) return {};
  return { missing: 'a Linux kernel of at least 6.19', provide: 'test/lab/vm/fetch-kernel.sh' };
}

/** @type {Suite[]} */
export const suites = [
  { name: 'check', steps: checkSteps, limitMinutes: 5 },
  {
    name: 'unit',
    folder: 'test/unit',
    // Fuzzing takes its time on a busy machine; how fast things are is for the benches to say.
    vitestArgs: ['--testTimeout=30000'],
    limitMinutes: 10,
  },
  { name: 'sim', folder: 'test/sim', limitMinutes: 10 },
  {
    name: 'contract',
    folder: 'test/contract',
    // Several of its files make interfaces with the same addresses on this host.
    vitestArgs: ['--no-file-parallelism'],
    usesBuild: true,
    limitMinutes: 10,
  },
  { name: 'electron', folder: 'test/electron', usesBuild: true, limitMinutes: 10 },
  { name: 'packaging', folder: 'test/packaging', usesBuild: true, limitMinutes: 10 },
  {
    name: 'web',
    folder: 'test/web',
    vitestArgs: ['--no-file-parallelism'],
    usesBuild: true,
    needs: [chromium],
    limitMinutes: 10,
  },
  {
    name: 'lab',
    folder: 'test/lab',
    // Much of their time the guests wait, for a minute of traffic or for a device that was unplugged.
    vitestArgs: ['--maxWorkers=2'],
    alone: ['experiment', 'observe', 'slow-modem', 'tap', 'tethering'].map(
      (name) => `test/lab/${name}.test.ts`,
    ),
    usesBuild: true,
    needs: [linuxOnX64, laboratoryTools, flentPlots, laboratoryKernel],
    limitMinutes: 35,
  },
];
