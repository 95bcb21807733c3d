import { neverUs, type Polled } from '../base/clock.ts';
import type { LineProgram, ProgramEnd, StartProgram } from './line-program.ts';
import { parsePingLine } from './ping-output.ts';
import { type PingResult, PingTracker, type PingTiming } from './ping-tracker.ts';

export interface OsPingSettings {
  readonly enabled: boolean;
  readonly intervalUs: number;
  readonly tos: number;
  readonly payloadBytes: number;
  readonly timeoutUs: number;
}

/** Why the program does not ping, in one sentence, and what to do about it. */
export interface PingTrouble {
  readonly message: string;
  readonly remedy?: string;
}

export interface OsPingOptions {
  readonly netdev: string;
  readonly start: StartProgram;
  /** Lets what comes from outside act at the present time. */
  readonly run: (action: (nowUs: number) => void) => void;
  readonly wallClockUs: () => number;
  readonly handleResult: (result: PingResult) => void;
  /** Something keeps the program from pinging; undefined: no more. */
  readonly handleTrouble: (trouble: PingTrouble | undefined) => void;
}

/** The round trip is in the payload: below this there is no room for the time in it. */
const leastPayloadBytes = 16;
/** Older versions of iputils let nobody but root send faster. */
const slowIntervalUs = 200_000;
const firstRestartUs = 1_000_000;
const longestRestartUs = 30_000_000;

/** ping's words for a right that it lacks. */
export const pingDenied = /not permitted|permission denied|cap_net_raw/i;
export const pingPermissionRemedy =
  'Give it that, as its package does:\nsudo setcap cap_net_raw+ep "$(command -v ping)"';
export const pingInstallRemedy = 'Install it:\nsudo apt-get install iputils-ping';
/** ping's own words for an interval that it does not grant. */
const tooFast = /minimal interval/;
/** How programs of other origin answer to iputils' options. */
const unknownOption = /invalid option|unrecognized option|illegal option|BusyBox/i;

/**
 * Pings an address out of one network interface with the system's own `ping`, which has the permission for it where an
 * unprivileged program has none. One program for as long as it goes; one that ends is started again, each time later.
 */
export class OsPing implements Polled {
  readonly #options: OsPingOptions;
  readonly #tracker: PingTracker;
  #settings: OsPingSettings;
  #target: string | undefined;
  #program: LineProgram | undefined;
  #startAtUs = neverUs;
  #restartUs = firstRestartUs;
  #isSlow = false;
  #isUnusable = false;
  #isForeign = false;
  #hasTrouble = false;

  constructor(settings: OsPingSettings, options: OsPingOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#tracker = new PingTracker(timingOf(settings), options.handleResult);
  }

  /** The interval that is really used: a system may not grant less. */
  get intervalUs(): number {
    return this.#isSlow ? Math.max(slowIntervalUs, this.#settings.intervalUs) : this.#settings.intervalUs;
  }

  configure(settings: OsPingSettings, nowUs: number): void {
    const before = this.#settings;
    this.#settings = settings;
    const same = (Object.keys(settings) as (keyof OsPingSettings)[]).every(
      (key) => settings[key] === before[key],
    );
    if (!same) this.#restart(nowUs);
  }

  /** Sets the address to ping; undefined stops. */
  setTarget(target: string | undefined, nowUs: number): void {
    if (target === this.#target) return;
    this.#target = target;
    this.#restart(nowUs);
  }

  #restart(nowUs: number): void {
    this.#stopProgram();
    const wanted = this.#settings.enabled && this.#target !== undefined && !this.#isUnusable;
    this.#restartUs = firstRestartUs;
    this.#startAtUs = wanted ? nowUs : neverUs;
  }

  #stopProgram(): void {
    this.#program?.stop();
    this.#program = undefined;
    this.#tracker.restart({ intervalUs: this.intervalUs, timeoutUs: this.#settings.timeoutUs });
  }

  #startProgram(target: string): void {
    const { netdev, start, run } = this.#options;
    const { tos, payloadBytes } = this.#settings;
    const seconds = String(this.intervalUs / 1e6);
    const bytes = Math.max(leastPayloadBytes, payloadBytes);
    this.#startAtUs = neverUs;
    this.#isForeign = false;
    this.#program = start(
      'ping',
      // No names are looked up; times of the wall clock; a word for each probe that is late.
      ['-n', '-D', '-O', '-I', netdev, '-i', seconds, '-Q', String(tos), '-s', String(bytes), target],
      {
        handleLine: (line) => run((nowUs) => this.#handleLine(line, nowUs)),
        handleErrorLine: (line) => {
          if (tooFast.test(line)) this.#isSlow = true;
          if (unknownOption.test(line)) this.#isForeign = true;
        },
        handleEnd: (end) => run((nowUs) => this.#handleEnd(end, nowUs)),
      },
    );
  }

  #handleLine(text: string, nowUs: number): void {
    if (this.#program === undefined) return;
    const line = parsePingLine(text);
    if (line === undefined) return;
    this.#tracker.handleLine(line, nowUs, this.#options.wallClockUs());
    if (line.kind !== 'reply') return;
    this.#restartUs = firstRestartUs;
    this.#setTrouble(undefined);
  }

  #handleEnd(end: ProgramEnd, nowUs: number): void {
    if (this.#program === undefined) return;
    const wasTooFast = this.#isSlow && tooFast.test(end.lastError);
    this.#stopProgram();
    if (end.isMissing || this.#isForeign) {
      this.#isUnusable = true;
      this.#setTrouble({
        message: end.isMissing
          ? 'Round trips are not measured: the program ping is missing.'
          : 'Round trips are not measured: the program ping of this system is not that of iputils.',
        remedy: pingInstallRemedy,
      });
      return;
    }
    if (wasTooFast) {
      this.#startAtUs = nowUs;
      return;
    }
    this.#setTrouble(
      pingDenied.test(end.lastError)
        ? {
            message: 'Round trips are not measured: ping has no permission to send.',
            remedy: pingPermissionRemedy,
          }
        : { message: `Round trips are not measured: ${troubleWords(end)}. It is tried again.` },
    );
    this.#startAtUs = nowUs + this.#restartUs;
    this.#restartUs = Math.min(longestRestartUs, 2 * this.#restartUs);
  }

  #setTrouble(trouble: PingTrouble | undefined): void {
    if (trouble === undefined && !this.#hasTrouble) return;
    this.#hasTrouble = trouble !== undefined;
    this.#options.handleTrouble(trouble);
  }

  poll(nowUs: number): void {
    this.#tracker.poll(nowUs);
    if (nowUs >= this.#startAtUs && this.#target !== undefined) this.#startProgram(this.#target);
  }

  pollAtUs(): number {
    return Math.min(this.#startAtUs, this.#tracker.pollAtUs());
  }

  close(): void {
    this.#target = undefined;
    this.#startAtUs = neverUs;
    this.#stopProgram();
  }
}

function timingOf(settings: OsPingSettings): PingTiming {
  return { intervalUs: settings.intervalUs, timeoutUs: settings.timeoutUs };
}

function troubleWords({ lastError, exitCode }: ProgramEnd): string {
  const words = lastError.replace(/^ping: /, '');
  return words === '' ? `ping ended with exit code ${exitCode ?? 'none'}` : `ping says “${words}”`;
}
