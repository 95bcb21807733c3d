import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The files of spec 1.5 that are set here. */
export const limitFiles = ['limit_min', 'limit_max', 'hold_time', 'limit'] as const;
export type LimitFile = (typeof limitFiles)[number];

/** One file that was changed. */
export interface LimitChange {
  readonly queue: string;
  readonly file: LimitFile;
  readonly was: number;
  readonly set: number;
}

/** What a program has changed on an interface and not yet put back. */
export interface JournalEntry {
  readonly netdev: string;
  /** The kernel's number for it: another interface of the same name has limits of its own. */
  readonly index: number;
  readonly pid: number;
  /** When that process started, as the kernel counts: numbers of processes are used again. */
  readonly processStart: string;
  readonly changes: readonly LimitChange[];
}

/**
 * Keeps on disk what has to be put back, so that a program that was killed can be cleaned up after. The folder is one
 * that does not outlive a reboot, like the limits themselves. Where there is none, nothing is kept.
 */
export class LimitsJournal {
  readonly #folder: string | undefined;
  readonly #procFolder: string;

  /** @param procFolder where processes are looked up; for tests */
  constructor(folder: string | undefined, procFolder = '/proc') {
    this.#folder = folder;
    this.#procFolder = procFolder;
  }

  write(netdev: string, index: number, changes: readonly LimitChange[]): void {
    if (this.#folder === undefined) return;
    const entry: JournalEntry = {
      netdev,
      index,
      pid: process.pid,
      processStart: this.#processStart(process.pid) ?? '',
      changes,
    };
    const path = join(this.#folder, fileName(netdev));
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o755 });
      // In one step: whoever reads it sees the old state or the new one.
      writeFileSync(`${path}.new`, JSON.stringify(entry));
      renameSync(`${path}.new`, path);
    } catch {
      // Without it, all is put back as long as this program comes to its end.
    }
  }

  remove(netdev: string): void {
    if (this.#folder !== undefined) rmSync(join(this.#folder, fileName(netdev)), { force: true });
  }

  /** What programs that are not there any more have left. */
  left(): readonly JournalEntry[] {
    if (this.#folder === undefined) return [];
    const entries: JournalEntry[] = [];
    for (const name of readNames(this.#folder)) {
      if (!name.endsWith(suffix)) continue;
      const entry = readEntry(join(this.#folder, name));
      if (entry !== undefined && this.#processStart(entry.pid) !== entry.processStart) entries.push(entry);
    }
    return entries;
  }

  /** Field 22 of `stat`, counted behind the name, which may hold anything. */
  #processStart(pid: number): string | undefined {
    try {
      const text = readFileSync(join(this.#procFolder, String(pid), 'stat'), 'utf8');
      return text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
    } catch {
      return undefined;
    }
  }
}

const suffix = '.limits.json';

function fileName(netdev: string): string {
  return `${netdev}${suffix}`;
}

function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readEntry(path: string): JournalEntry | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { netdev, index, pid, processStart, changes } = parsed as Readonly<Record<string, unknown>>;
  if (typeof netdev !== 'string' || typeof index !== 'number' || typeof pid !== 'number') return undefined;
  if (typeof processStart !== 'string' || !Array.isArray(changes)) return undefined;
  return { netdev, index, pid, processStart, changes: changes.filter(isChange) };
}

function isChange(value: unknown): value is LimitChange {
  if (typeof value !== 'object' || value === null) return false;
  const { queue, file, was, set } = value as Readonly<Record<string, unknown>>;
  return (
    typeof queue === 'string' &&
    /^tx-\d+$/.test(queue) &&
    limitFiles.some((name) => name === file) &&
    typeof was === 'number' &&
    typeof set === 'number'
  );
}

/** Where the system's and a user's programs keep what must not outlive a reboot; undefined: there is no such place. */
export function defaultJournalFolder(
  environment: NodeJS.ProcessEnv,
  userId: number | undefined,
): string | undefined {
  if (userId === 0) return '/run/queuescope';
  const runtimeFolder = environment['XDG_RUNTIME_DIR'];
  return runtimeFolder === undefined || runtimeFolder === '' ? undefined : join(runtimeFolder, 'queuescope');
}
