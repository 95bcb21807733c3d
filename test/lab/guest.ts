/**
 * Boots the laboratory's guest (see docs/laboratory.md) and hands back what its script left: one guest runs several
 * scenarios, each with facts, a log and files of its own, so that each can be a test case of its own.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const bootScript = join(checkout, 'test/lab/vm/boot.sh');

/** How long after the guest's own deadline the scripts around it may take, ms: building the initial file system. */
const graceMs = 60_000;
const shownLines = 25;

export interface GuestOptions {
  /** Names the exchange folder, `.cache/lab/runs/<name>`, which stays for a look after a failure. */
  readonly name: string;
  /** What bash runs in the guest, as a file; the functions of `vm/guest-functions.sh` are there. */
  readonly scriptFile: URL;
  /** Files for the guest's /mnt, by name. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Builds the program and gives the guest a copy of that build: "${queuescope[@]}" in its script. */
  readonly program?: boolean;
  /** More arguments for QEMU, such as a device. */
  readonly qemuArguments?: readonly string[];
  /** A network card on QEMU's user network: guest 10.0.2.15, this machine 10.0.2.2. */
  readonly network?: boolean;
  /** The machine is stopped after so many seconds; its script 10 s before. */
  readonly limitSeconds: number;
}

/** One scenario of a guest's script, which ended well. */
export interface Scenario {
  readonly name: string;
  readonly log: string;
  /** A fact's value; throws where the scenario left no such fact. */
  fact(key: string): string;
  /** A fact's value as a number; throws where it is none. */
  number(key: string): number;
  /** Whether the scenario left this file in its folder, with something in it. */
  has(file: string): boolean;
  path(file: string): string;
  /** A file's text; throws where there is none. */
  text(file: string): string;
  json(file: string): unknown;
  /** Each line of a file as JSON. */
  jsonLines(file: string): unknown[];
}

export interface GuestRun {
  /** The script's exit code; 124: it ran into its deadline; undefined: the machine did not come to its end. */
  readonly exitCode: number | undefined;
  /** What the script printed. */
  readonly output: string;
  /** Why the machine did not come to its end, with its console's last lines; else the empty string. */
  readonly failure: string;
  /** Seconds from the guest kernel's start to the script's. */
  readonly bootSeconds: number;
  /** How fast the guest's clock ran beside this machine's, over the whole run. */
  readonly clockRatio: number;
  /** Seconds from the call to QEMU's end. */
  readonly seconds: number;
  /** The exchange folder. */
  readonly folder: string;
  /** A scenario that ended with exit code 0; throws with its log where it did not, or did not run. */
  scenario(name: string): Scenario;
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-shownLines).join('\n');
}

/**
 * Built here and not in the guest, where it takes minutes. Throws where the build fails. Only what the guest runs is copied,
 * nothing beside it: another test file may be looking whether the build is current.
 */
function copyBuild(folder: string): void {
  execFileSync(process.execPath, ['build/build.mjs'], {
    cwd: checkout,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const program = 'node';
  cpSync(join(checkout, 'dist', program), join(folder, program), {
    recursive: true,
    filter: (file) => !file.endsWith('.map'),
  });
}

interface Ended {
  readonly code: number | null;
  readonly errors: string;
}

function runBootScript(options: GuestOptions, folder: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(bootScript, [fileURLToPath(options.scriptFile), ...(options.qemuArguments ?? [])], {
      env: {
        ...process.env,
        LAB_FOLDER: folder,
        LAB_KEEP_FOLDER: '1',
        LAB_NETWORK: options.network === true ? '1' : '',
        LAB_NODE: process.execPath,
        LIMIT_SECONDS: String(options.limitSeconds),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const deadline = setTimeout(() => child.kill('SIGTERM'), options.limitSeconds * 1000 + graceMs);
    child.on('error', (error) => {
      clearTimeout(deadline);
      reject(error);
    });
    child.on('close', (code) => {
      clearTimeout(deadline);
      resolve({ code, errors });
    });
  });
}

function readFacts(folder: string): Map<string, Map<string, string>> {
  const scenarios = new Map<string, Map<string, string>>();
  for (const line of readOr(join(folder, 'facts.tsv'), '').split('\n')) {
    const [scenario, key, value] = line.split('\t');
    if (scenario === undefined || key === undefined || value === undefined) continue;
    const facts = scenarios.get(scenario) ?? new Map<string, string>();
    scenarios.set(scenario, facts.set(key, value));
  }
  return scenarios;
}

function scenarioOf(name: string, facts: ReadonlyMap<string, string>, folder: string): Scenario {
  const path = (file: string): string => join(folder, file);
  const text = (file: string): string => readFileSync(path(file), 'utf8');
  const fact = (key: string): string => {
    const value = facts.get(key);
    if (value === undefined) {
      throw new Error(`scenario ${name} left no fact ${key}; it has ${[...facts.keys()].join(', ')}`);
    }
    return value;
  };
  return {
    name,
    log: readOr(path('log.txt'), ''),
    fact,
    number(key) {
      const value = Number(fact(key));
      if (Number.isNaN(value)) throw new Error(`scenario ${name}: ${key} is no number but "${fact(key)}"`);
      return value;
    },
    has: (file) => (statSync(path(file), { throwIfNoEntry: false })?.size ?? 0) > 0,
    path,
    text,
    json: (file) => JSON.parse(text(file)) as unknown,
    jsonLines: (file) =>
      text(file)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
  };
}

/**
 * Boots one guest, waits for its end and returns what it left. Rejects where no guest can be booted on this machine (no
 * kernel, no QEMU), with what is missing and the command that brings it. A guest that hangs or crashes is a result.
 */
export async function bootGuest(options: GuestOptions): Promise<GuestRun> {
  const folder = join(checkout, '.cache/lab/runs', options.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(options.files ?? {})) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  if (options.program === true) copyBuild(join(folder, 'dist'));
  const begin = performance.now();
  const { code, errors } = await runBootScript(options, folder);
  const seconds = (performance.now() - begin) / 1000;
  const exitCodeText = readOr(join(folder, 'exit-code'), '').trim();
  const exitCode = exitCodeText === '' ? undefined : Number(exitCodeText);
  // 125 is boot.sh's word for a guest that started and did not come to its end.
  if (exitCode === undefined && code !== 125) {
    throw new Error(`The laboratory's guest did not start (exit code ${code}).\n${errors.trim()}`);
  }
  const output = readOr(join(folder, 'output.txt'), '');
  const failure = exitCode === undefined ? errors.trim() : '';
  const allFacts = readFacts(folder);

  return {
    exitCode,
    output,
    failure,
    bootSeconds: Number(readOr(join(folder, 'boot-seconds'), 'NaN')),
    clockRatio: Number(readOr(join(folder, 'clock-ratio'), 'NaN')),
    seconds,
    folder,
    scenario(name) {
      const facts = allFacts.get(name);
      const log = lastLines(readOr(join(folder, name, 'log.txt'), ''));
      const ended = facts?.get('exitCode');
      if (facts !== undefined && ended === '0') return scenarioOf(name, facts, join(folder, name));
      const what =
        facts === undefined || ended === undefined
          ? `did not come to its end; the guest's exit code: ${exitCode ?? 'none'}`
          : ended === '124'
            ? 'ran into its deadline'
            : `failed with exit code ${ended}`;
      const words = [`Scenario ${name} ${what}.`];
      if (log !== '') words.push(`Its log's last lines (${join(folder, name, 'log.txt')}):\n${log}`);
      if (ended === undefined && output !== '') words.push(`The script's last words:\n${lastLines(output)}`);
      if (failure !== '') words.push(failure);
      throw new Error(words.join('\n'));
    },
  };
}
