import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalEntry, LimitChange, LimitFile, LimitsJournal } from './limits-journal.ts';
import { limitFiles } from './limits-journal.ts';
import type { NetdevDescription, NetdevFiles } from './netdev-files.ts';
import { codeOf } from './number-file.ts';

/** The largest limit that the kernel takes (DQL_MAX_LIMIT, spec 1.1); in the files also written as `max`. */
const maxLimitBytes = 1_879_048_192;

/** What can be set, for all queues of an interface alike. */
export interface LimitSettings {
  readonly limitMinBytes: number;
  readonly limitMaxBytes: number;
  readonly holdTimeMs: number;
}

/** A setting that the kernel did not take, or that was not even tried. */
export interface LimitFailure {
  readonly kind: 'denied' | 'invalid' | 'gone';
  /** One sentence. */
  readonly message: string;
  readonly remedy?: string;
}

/**
 * As good as no limit: just above what a driver lets on its way. For USB that is what usbnet allows at each speed (91,080
 * bytes at high speed, five times that from SuperSpeed on, else four transfers; spec 2.2); for others, about as much as
 * their rings hold. Not more: the kernel takes as many packets out of the qdisc at once as there is room below the limit,
 * and a packet that comes later can't overtake those.
 */
const unlimitedBytes = { slow: 66_000, high: 92_000, super: 456_000, other: 1_500_000 } as const;

function unlimitedBytesOf({ bus, usb }: NetdevDescription): number {
  if (bus !== 'usb') return unlimitedBytes.other;
  const megabits = Number(usb?.speedMbit ?? Number.NaN);
  if (megabits < 480) return unlimitedBytes.slow;
  return megabits === 480 ? unlimitedBytes.high : unlimitedBytes.super;
}

const fileOf: Readonly<Record<keyof LimitSettings, LimitFile>> = {
  limitMinBytes: 'limit_min',
  limitMaxBytes: 'limit_max',
  holdTimeMs: 'hold_time',
};

/**
 * Sets the limits of an interface's queues, and puts back what was there before. The kernel's BQL cannot be switched off
 * from outside: "off" is a `limit_min` that is larger than all that the driver takes.
 */
export class QueueLimits {
  readonly #files: NetdevFiles;
  readonly #journal: LimitsJournal;
  readonly #netdev: string;
  readonly #index: number;
  readonly #queues: readonly string[];
  /** What "off" sets `limit_min` to. */
  readonly unlimitedBytes: number;
  /** What was found before the first change, by path. */
  readonly #changes = new Map<string, LimitChange>();
  /** The limits that BQL had found when it was switched off, by queue: found again at once when it is switched on. */
  readonly #limitsBefore = new Map<string, number>();
  readonly #putBackAtExit = (): void => void this.restore();
  #wanted: LimitSettings;
  #isEnabled = true;

  constructor(files: NetdevFiles, journal: LimitsJournal, netdev: NetdevDescription) {
    this.#files = files;
    this.#journal = journal;
    this.#netdev = netdev.name;
    this.#index = netdev.index;
    this.#queues = netdev.bqlQueues;
    this.unlimitedBytes = unlimitedBytesOf(netdev);
    this.#wanted = this.#read();
  }

  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  /** As they are while BQL is on; those of the first queue, where another program has set them apart. */
  get settings(): LimitSettings {
    return this.#wanted;
  }

  /** Whether all queues have the same settings. */
  get isUniform(): boolean {
    return Object.values(fileOf).every(
      (file) => new Set(this.#queues.map((queue) => this.#readFile(queue, file))).size <= 1,
    );
  }

  /** What another program has set since; undefined: nothing. */
  refresh(): LimitSettings | undefined {
    if (!this.#isEnabled) return undefined;
    const now = this.#read();
    const changed = (Object.keys(fileOf) as (keyof LimitSettings)[]).some(
      (key) => !Number.isNaN(now[key]) && now[key] !== this.#wanted[key],
    );
    if (!changed) return undefined;
    this.#wanted = now;
    return now;
  }

  #read(): LimitSettings {
    const [first] = this.#queues;
    const read = (file: LimitFile): number =>
      first === undefined ? Number.NaN : this.#readFile(first, file);
    return {
      limitMinBytes: read('limit_min'),
      limitMaxBytes: read('limit_max'),
      holdTimeMs: read('hold_time'),
    };
  }

  /** Sets what is given, up to the first value that the kernel does not take. */
  set(changes: Partial<LimitSettings>): LimitFailure | undefined {
    const wanted = { ...this.#wanted, ...changes };
    for (const key of ['limitMinBytes', 'limitMaxBytes'] as const) {
      if (changes[key] === undefined || isLimit(changes[key])) continue;
      return {
        kind: 'invalid',
        message: `${fileOf[key]} is a whole number of bytes from 0 to ${maxLimitBytes}.`,
      };
    }
    let failure: LimitFailure | undefined;
    for (const key of Object.keys(fileOf) as (keyof LimitSettings)[]) {
      // While BQL is off, its limits are those that make it so.
      if (!this.#isEnabled && key !== 'holdTimeMs') continue;
      if (wanted[key] !== this.#wanted[key]) failure ??= this.#writeAll(fileOf[key], wanted[key]);
    }
    if (this.#isEnabled) this.#wanted = this.#read();
    else if (failure === undefined) this.#wanted = wanted;
    return failure;
  }

  /** Switches BQL on, or as good as off. */
  setEnabled(isEnabled: boolean): LimitFailure | undefined {
    if (isEnabled === this.#isEnabled) return undefined;
    if (this.#queues.length === 0) {
      return {
        kind: 'invalid',
        message: `The driver of ${this.#netdev} does not use BQL: there is nothing to switch.`,
      };
    }
    const failure = isEnabled ? this.#switchOn() : this.#switchOff();
    if (failure === undefined) this.#isEnabled = isEnabled;
    return failure;
  }

  #switchOff(): LimitFailure | undefined {
    for (const queue of this.#queues) this.#limitsBefore.set(queue, this.#readFile(queue, 'limit'));
    // A smaller limit_max would win over limit_min.
    const failure =
      (this.#wanted.limitMaxBytes < this.unlimitedBytes
        ? this.#writeAll('limit_max', this.unlimitedBytes)
        : undefined) ?? this.#writeAll('limit_min', this.unlimitedBytes);
    if (failure !== undefined) this.#switchOn();
    return failure;
  }

  #switchOn(): LimitFailure | undefined {
    const { limitMinBytes, limitMaxBytes } = this.#wanted;
    const failure = this.#writeAll('limit_min', limitMinBytes) ?? this.#writeAll('limit_max', limitMaxBytes);
    if (failure !== undefined) return failure;
    this.#putLimitsBack();
    this.#keepJournal();
    return undefined;
  }

  /** Left to itself, a limit comes down only with a queue that is never empty for a whole hold time. */
  #putLimitsBack(): void {
    for (const [queue, limit] of this.#limitsBefore) {
      try {
        if (!Number.isNaN(limit)) writeNumber(this.#path(queue, 'limit'), limit);
      } catch {
        // The bounds are back, so BQL finds it again.
      }
    }
    this.#limitsBefore.clear();
  }

  #writeAll(file: LimitFile, value: number): LimitFailure | undefined {
    for (const queue of this.#queues) {
      const failure = this.#write(queue, file, value);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  #write(queue: string, file: LimitFile, value: number): LimitFailure | undefined {
    const path = this.#path(queue, file);
    const known = this.#changes.get(path);
    const was = known?.was ?? this.#readFile(queue, file);
    if (known === undefined && was === value) return undefined;
    // On disk before it is done: what was never written does no harm there.
    this.#changes.set(path, { queue, file, was, set: value });
    this.#keepJournal();
    try {
      writeNumber(path, value);
    } catch (error) {
      if (known === undefined) this.#changes.delete(path);
      else this.#changes.set(path, known);
      this.#keepJournal();
      return this.#failure(file, value, error);
    }
    if (was === value) this.#changes.delete(path);
    return undefined;
  }

  #failure(file: LimitFile, value: number, error: unknown): LimitFailure {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENODEV') {
      return { kind: 'gone', message: `${this.#netdev} is not there any more.` };
    }
    if (code === 'EINVAL' || code === 'ERANGE') {
      return { kind: 'invalid', message: `The kernel does not take ${value} as ${file}.` };
    }
    return {
      kind: 'denied',
      message: `There is no permission to set ${file} of ${this.#netdev}.`,
      remedy: `Only root may: start Queuescope as root, or set it yourself:\n${setCommand(this.#netdev, file, value)}`,
    };
  }

  /** Puts everything back as it was found; says in one sentence and a command each what could not be. */
  restore(): readonly { readonly message: string; readonly remedy: string }[] {
    const notRestored: { message: string; remedy: string }[] = [];
    for (const { queue, file, was } of inRestoringOrder([...this.#changes.values()])) {
      const path = this.#path(queue, file);
      try {
        writeNumber(path, was);
      } catch (error) {
        const code = codeOf(error);
        if (code === 'ENOENT' || code === 'ENODEV') continue;
        notRestored.push({
          message: `${file} of ${this.#netdev} could not be set back to ${was} (${code}).`,
          remedy: `Set it back:\n${restoreCommand(path, was)}`,
        });
      }
    }
    this.#changes.clear();
    this.#putLimitsBack();
    this.#isEnabled = true;
    this.#wanted = this.#read();
    // What is left is still told by the file.
    if (notRestored.length === 0) this.#keepJournal();
    return notRestored;
  }

  /** Everything that is to be put back, for whoever has to if this program is killed. */
  #keepJournal(): void {
    process.off('exit', this.#putBackAtExit);
    const limits = [...this.#limitsBefore].map(([queue, was]) => ({
      queue,
      file: 'limit' as const,
      was,
      set: this.unlimitedBytes,
    }));
    const changes = [...this.#changes.values(), ...(this.#changes.size === 0 ? [] : limits)];
    if (changes.length === 0) {
      this.#journal.remove(this.#netdev);
      return;
    }
    process.on('exit', this.#putBackAtExit);
    this.#journal.write(this.#netdev, this.#index, changes);
  }

  #readFile(queue: string, file: LimitFile): number {
    return readNumber(this.#path(queue, file));
  }

  #path(queue: string, file: LimitFile): string {
    return join(this.#files.limitsFolder(this.#netdev, queue), file);
  }
}

/** What a program that was killed has left behind on an interface that is still there. */
export interface LeftLimits {
  readonly netdev: string;
  /** Files that still hold what it set, with what they held before. */
  readonly files: readonly { readonly path: string; readonly was: number; readonly is: number }[];
  /** Commands that put all of it back, one a line. */
  readonly commands: string;
}

/** Undefined: nothing is left, or it has been taken care of. */
export async function findLeftLimits(
  files: NetdevFiles,
  entry: JournalEntry,
): Promise<LeftLimits | undefined> {
  if ((await files.index(entry.netdev)) !== entry.index) return undefined;
  const left = inRestoringOrder(entry.changes)
    .map(({ queue, file, was, set }) => {
      const path = join(files.limitsFolder(entry.netdev, queue), file);
      return { path, was, set, is: readNumber(path) };
    })
    // What is something else by now was set by somebody else, or by BQL itself.
    .filter(({ was, set, is }) => is === set && was !== is)
    .map(({ path, was, is }) => ({ path, was, is }));
  if (left.length === 0) return undefined;
  return {
    netdev: entry.netdev,
    files: left,
    commands: left.map(({ path, was }) => restoreCommand(path, was)).join('\n'),
  };
}

/** Puts back what a killed program has left. False: there is no permission. */
export function restoreLeftLimits({ files }: LeftLimits): boolean {
  try {
    for (const { path, was } of files) writeNumber(path, was);
    return true;
  } catch {
    return false;
  }
}

function isLimit(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= maxLimitBytes;
}

/** `limit` last: BQL moves it within the others' bounds. */
function inRestoringOrder(changes: readonly LimitChange[]): readonly LimitChange[] {
  return [...changes].sort((a, b) => limitFiles.indexOf(a.file) - limitFiles.indexOf(b.file));
}

function setCommand(netdev: string, file: LimitFile, value: number): string {
  return `echo ${value} | sudo tee /sys/class/net/${netdev}/queues/tx-*/byte_queue_limits/${file}`;
}

function restoreCommand(path: string, value: number): string {
  return `echo ${value} | sudo tee ${path}`;
}

function readNumber(path: string): number {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return /^\d+$/.test(text) ? Number(text) : Number.NaN;
  } catch {
    return Number.NaN;
  }
}

/** @throws with `code` EACCES, EINVAL, ENODEV, … */
function writeNumber(path: string, value: number): void {
  // Never made: what is not there is gone.
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_TRUNC);
  try {
    writeSync(descriptor, `${value}\n`);
  } finally {
    closeSync(descriptor);
  }
}
