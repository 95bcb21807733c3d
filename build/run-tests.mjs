import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suites } from './suites.mjs';

/**
 * What `npm test` runs: the suites of `build/suites.mjs`, or those that are named (`npm test -- unit web`, or
 * SUITES=unit,web). A suite whose needs this machine does not meet is skipped with a line that says why and what would
 * help; where REQUIRE names it (REQUIRE=web,lab) that is a failure. Installs nothing. The last line is the sum.
 *
 * `--list` prints the names of the suites that exist in this checkout.
 *
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const exitUsage = 2;
const exitInterrupted = 130;
/** A child that was told to end gets so long before it is made to. */
const graceMs = 5000;

/** Children that run, each the leader of a process group of its own. @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

let isInterrupted = false;

function signalGroup(child, signal) {
  try {
    if (process.platform === 'win32') child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It ended in the meantime.
  }
}

function endChildren() {
  for (const child of running) {
    signalGroup(child, 'SIGTERM');
    setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs).unref();
  }
}

/**
 * Runs a node program in the root, its output shown.
 * @returns {Promise<{ code: number | null, timedOut: boolean }>}
 */
function runNode(args, { environment = {}, limitMinutes }) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: process.platform !== 'win32',
    });
    running.add(child);
    let timedOut = false;
    const deadline = setTimeout(() => {
      timedOut = true;
      signalGroup(child, 'SIGTERM');
      setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs).unref();
    }, limitMinutes * 60_000);
    const done = () => {
      clearTimeout(deadline);
      running.delete(child);
    };
    child.on('error', (error) => {
      done();
      reject(error);
    });
    child.on('close', (code) => {
      done();
      // What a program left behind in its group ends with it.
      signalGroup(child, 'SIGKILL');
      if (isInterrupted) process.exit(exitInterrupted);
      resolve({ code, timedOut });
    });
  });
}

/** The file behind a package's program, so that no shell and no .cmd file comes in between. */
function programOf(packageName, name = packageName) {
  const folder = join(root, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : bin[name]);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

/** @returns {Counts} */
const counts = (passed, failed, skipped) => ({ passed, failed, skipped });

/** A test that stands in no suite would never run. @returns {Counts} */
function checkFolders() {
  const known = new Set(suites.flatMap(({ folder }) => (folder === undefined ? [] : [basename(folder)])));
  const strays = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.test\.tsx?$/.test(file))
    .filter((file) => !known.has(file.split(/[\\/]/)[0]));
  for (const file of strays) say(`test/${file} belongs to no suite of build/suites.mjs`);
  return strays.length === 0 ? counts(1, 0, 0) : counts(0, 1, 0);
}

/** @returns {Promise<Counts>} */
async function runSteps(suite) {
  const sum = checkFolders();
  for (const step of suite.steps(root)) {
    const begin = performance.now();
    const { code } = await runNode([programOf(step.package, step.bin), ...step.args], suite);
    say(`  ${code === 0 ? 'ok    ' : 'FAILED'} ${step.name} (${secondsSince(begin)} s)`);
    if (code === 0) sum.passed++;
    else sum.failed++;
  }
  return sum;
}

/** What vitest's JSON report says; a file that failed without a failed test counts as one. @returns {Counts | undefined} */
function readReport(file) {
  if (!existsSync(file)) return undefined;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const failedFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((result) => result.status === 'failed'),
  );
  return counts(
    report.numPassedTests,
    report.numFailedTests + failedFiles.length,
    report.numPendingTests + report.numTodoTests,
  );
}

/** @returns {Promise<Counts>} */
async function runVitest(suite, environment) {
  const { alone = [], vitestArgs = [] } = suite;
  const others = alone.flatMap((file) => ['--exclude', file]);
  const sum = await runFiles(suite, suite.name, [suite.folder, ...others, ...vitestArgs], environment);
  if (alone.length === 0) return sum;
  const args = [...alone, '--no-file-parallelism'];
  const sumAlone = await runFiles(suite, `${suite.name}-alone`, args, environment);
  return counts(sum.passed + sumAlone.passed, sum.failed + sumAlone.failed, sum.skipped + sumAlone.skipped);
}

/** One run of vitest, with a report of that name. @returns {Promise<Counts>} */
async function runFiles(suite, name, args, environment) {
  const reportFile = join(root, 'test-results', `${name}.json`);
  mkdirSync(dirname(reportFile), { recursive: true });
  rmSync(reportFile, { force: true });
  const { code, timedOut } = await runNode(
    [
      programOf('vitest'),
      'run',
      ...args,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${reportFile}`,
    ],
    { environment, limitMinutes: suite.limitMinutes },
  );
  const sum = readReport(reportFile) ?? counts(0, 0, 0);
  if (code !== 0 && sum.failed === 0) {
    say(timedOut ? `${name}: stopped after ${suite.limitMinutes} minutes` : `${name}: vitest failed`);
    sum.failed++;
  }
  return sum;
}

function secondsSince(begin) {
  return ((performance.now() - begin) / 1000).toFixed(1);
}

function inWords({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function exists(suite) {
  return suite.folder === undefined || existsSync(join(root, suite.folder));
}

/** The suites that a comma list names. Throws for a name that is none. */
function namesIn(text, origin) {
  const names = text.split(/[\s,]+/).filter((name) => name !== '');
  for (const name of names) {
    if (!suites.some((suite) => suite.name === name)) {
      throw new RangeError(
        `${origin}: no suite "${name}"; there are ${suites.map((suite) => suite.name).join(', ')}`,
      );
    }
  }
  return names;
}

/** What keeps a suite from running, or the environment for its tests. */
function findNeeds(suite) {
  const environment = {};
  for (const need of suite.needs ?? []) {
    const finding = need(root);
    if ('missing' in finding) return { blocked: `needs ${finding.missing}; this helps: ${finding.provide}` };
    Object.assign(environment, finding.environment);
  }
  return { environment };
}

/** @returns {Promise<Counts>} */
async function runSuite(suite, { isRequired, isBuilt }) {
  const { blocked, environment } =
    suite.usesBuild === true && !isBuilt ? { blocked: 'needs the build, which failed' } : findNeeds(suite);
  if (blocked !== undefined) {
    say(`${isRequired ? 'FAILED ' : 'skipped'} ${suite.name}: ${blocked}`);
    return isRequired ? counts(0, 1, 0) : counts(0, 0, 1);
  }
  return suite.folder === undefined ? runSteps(suite) : runVitest(suite, environment);
}

async function main(args) {
  if (args.includes('--list')) {
    for (const suite of suites.filter(exists)) say(suite.name);
    return;
  }
  const named = args.length > 0 ? args.join(' ') : (process.env['SUITES'] ?? '');
  const required = namesIn(process.env['REQUIRE'] ?? '', 'REQUIRE');
  const wanted = namesIn(named, args.length > 0 ? 'npm test' : 'SUITES');
  const isWanted = (suite) => wanted.length === 0 || wanted.includes(suite.name);
  const chosen = suites.filter(isWanted).filter((suite) => exists(suite) || required.includes(suite.name));

  const begin = performance.now();
  const lines = [];
  const sum = counts(0, 0, 0);
  const runOne = async (name, run) => {
    say(`\n== ${name}`);
    const suiteBegin = performance.now();
    const result = await run();
    for (const key of Object.keys(sum)) sum[key] += result[key];
    lines.push(`${name.padEnd(10)} ${inWords(result).padEnd(40)} ${secondsSince(suiteBegin).padStart(7)} s`);
    return result.failed === 0;
  };

  let isBuilt = true;
  if (chosen.some((suite) => suite.folder !== undefined)) {
    isBuilt = await runOne('build', async () => {
      const { code } = await runNode(['build/build.mjs'], { limitMinutes: 5 });
      return code === 0 ? counts(1, 0, 0) : counts(0, 1, 0);
    });
  }
  for (const suite of chosen) {
    await runOne(suite.name, () => {
      const isRequired = required.includes(suite.name);
      if (exists(suite)) return runSuite(suite, { isRequired, isBuilt });
      say(`FAILED  ${suite.name}: ${suite.folder} is not there`);
      return counts(0, 1, 0);
    });
  }
  say(`\n${lines.join('\n')}\n${' '.repeat(51)} ${secondsSince(begin).padStart(7)} s in all\n`);
  say(inWords(sum));
  process.exitCode = sum.failed === 0 ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // A second Ctrl-C does not wait for anybody.
    if (isInterrupted || running.size === 0) process.exit(exitInterrupted);
    isInterrupted = true;
    endChildren();
  });
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = exitUsage;
}
