import { neverUs } from '../base/clock.ts';
import type { AppError } from '../base/errors.ts';
import { formatBytes } from '../base/units.ts';
import type { Fact } from '../contract/session.ts';
import {
  type BqlSettings,
  defaultSessionSettings,
  type LiveSettings,
  type SessionSettings,
} from '../contract/settings.ts';
import { readDriverInformation } from '../observe/driver-information.ts';
import type { NetdevDescription } from '../observe/netdev-files.ts';
import { NetdevReader, type NetdevStatus } from '../observe/netdev-reader.ts';
import { QdiscMonitor, type QdiscReading } from '../observe/qdisc-monitor.ts';
import { type LimitFailure, type LimitSettings, QueueLimits } from '../observe/queue-limits.ts';
import type { MeasurementObserver, MeasurementOptions, MeasurementPath } from './measurement-path.ts';
import {
  bqlProblem,
  type BqlUse,
  describeDriverInformation,
  describeNetdev,
  describeStatus,
} from './netdev-facts.ts';
import { NetdevSampler, type NetdevSamplerSource } from './netdev-sampler.ts';
import type { ObserveSystem } from './observe-system.ts';
import { ObservedLink } from './observed-link.ts';
import type { NotReturned } from './opened-device.ts';
import type { LagMeter } from './sampler.ts';

/** How often it is looked at what changes seldom. */
const statusUs = 500_000;
/** Bytes in flight and no progress for this long: stalled. */
const stallUs = 2_000_000;
/** So many packets have gone out and the limit is still 0: the driver does not take part in BQL. */
const packetsWithoutLimit = 16;
/** The qdisc is asked at most this often. */
const qdiscIntervalUs = 50_000;
/** The longest that a setting can say; the kernel knows longer ones. */
const longestHoldTimeMs = 60_000;

export interface ObservePathOptions extends MeasurementOptions {
  readonly system: ObserveSystem;
  /** As it was found when it was opened. */
  readonly netdev: NetdevDescription;
  readonly lag: LagMeter;
  /** Lets what comes from outside act at the present time; what it throws ends the session. */
  readonly run: (action: (nowUs: number) => void) => void;
}

type LimitRequest = Partial<LimitSettings> & { readonly enabled?: boolean };

/**
 * Measures a network interface that the kernel keeps: its BQL files, counters and qdisc are read, and the system's ping
 * goes through it. Nothing is changed but what is asked for, and that is put back at the end.
 */
export class ObservePath implements MeasurementPath, NetdevSamplerSource {
  readonly #options: ObservePathOptions;
  readonly #observer: MeasurementObserver;
  readonly #netdev: NetdevDescription;
  readonly #reader: NetdevReader;
  readonly #limits: QueueLimits;
  readonly #qdisc: QdiscMonitor;
  readonly #link: ObservedLink;
  readonly #sampler: NetdevSampler;
  readonly #facts = new Map<string, string>();
  readonly #notReturned: NotReturned[] = [];
  #settings: SessionSettings;
  #bqlUse: BqlUse;
  #firstTxPackets = Number.NaN;
  #status: NetdevStatus | undefined;
  #statusAtUs = neverUs;
  #progressBytes = Number.NaN;
  #progressInflightBytes = Number.NaN;
  #progressAtUs = 0;
  #isStalled = false;
  /** The problem that is shown for a setting that was not taken. */
  #limitsProblem: string | undefined;
  #isOver = false;

  constructor(options: ObservePathOptions) {
    const { netdev, settings, observer, system, startUs, lag, run } = options;
    this.#options = options;
    this.#observer = observer;
    this.#netdev = netdev;
    this.#settings = { ...settings, load: { ...settings.load, enabled: false } };
    this.#bqlUse = netdev.bqlQueues.length === 0 ? 'absent' : 'unknown';
    this.#reader = new NetdevReader(system.files, netdev);
    this.#limits = new QueueLimits(system.files, system.journal, netdev);
    this.#qdisc = new QdiscMonitor({
      netdev: netdev.name,
      start: system.startProgram,
      run,
      intervalUs: qdiscIntervalUs,
      handleKind: (kind) => this.#tell([{ group: 'queue', name: 'Qdisc', value: kind }]),
      handleFailure: (message, remedy) =>
        observer.handleProblem({
          id: 'no-qdisc',
          severity: 'info',
          message: `What waits in the qdisc is not shown. ${message}`,
          ...(remedy === undefined ? {} : { remedy }),
        }),
    });
    this.#link = new ObservedLink({
      netdev: netdev.name,
      system,
      observer,
      startUs,
      ping: settings.ping,
      wantedTarget: settings.target,
      run,
      later: (promise, handle) => this.#later(promise, handle),
      tell: (facts) => this.#tell(facts),
    });
    this.#sampler = new NetdevSampler({
      reader: this.#reader,
      source: this,
      startUs,
      rateHz: settings.sampleRateHz,
      lag,
      report: (row, nowUs) => {
        observer.handleSample(row);
        this.#watchProgress(nowUs);
      },
    });
  }

  get settings(): SessionSettings {
    return this.#settings;
  }

  // ---- start and loss ----

  start(nowUs: number): void {
    const { system } = this.#options;
    const netdev = this.#netdev;
    this.#progressAtUs = nowUs;
    this.#observer.handleStage(
      'bind',
      'done',
      `${netdev.driver ?? 'no device behind it'}, kept by the kernel`,
    );
    this.#observer.handleStage('carrier', 'active', 'looking at the link');
    this.#observer.handleStage('measure', 'active', 'reading the kernel’s files');
    this.#tell(describeNetdev(netdev, system.kernelRelease));
    this.#applySettings(nowUs);
    this.#sampler.start(nowUs);
    this.#readStatus(nowUs);
    this.#later(readDriverInformation(system.startProgram, netdev.name), (information) => {
      if (information !== undefined) this.#tell(describeDriverInformation(information));
    });
  }

  #handleVanished(nowUs: number): void {
    if (this.#isOver) return;
    this.#observer.handleEvent('unplug', `${this.#netdev.name} is gone`, nowUs);
    this.release();
    this.#observer.handleGone();
  }

  // ---- what changes seldom ----

  #readStatus(nowUs: number): void {
    const netdev = this.#netdev;
    this.#statusAtUs = nowUs + statusUs;
    const before = this.#status;
    const status = this.#reader.readStatus();
    this.#status = status;
    this.#sampler.handleStatus(status);
    if (before !== undefined) this.#tellChanges(before, status, nowUs);
    if (this.#limits.refresh() !== undefined) {
      this.#adoptSettings();
      this.#observer.handleSettings(this.#settings);
      this.#observer.handleEvent('settings', 'another program has set BQL’s limits', nowUs);
    }
    this.#tellBql();
    // Another number: it went, and another one came, between two looks.
    this.#later(this.#options.system.files.index(netdev.name), (index, atUs) => {
      if (index !== netdev.index) this.#handleVanished(atUs);
    });
    this.#link.look();
  }

  #tellChanges(before: NetdevStatus, status: NetdevStatus, nowUs: number): void {
    if (status.txTimeouts > before.txTimeouts) {
      this.#observer.handleEvent('timeout', 'the kernel found a transmit queue stuck', nowUs);
    }
    if (status.stallCount > before.stallCount) {
      this.#observer.handleEvent('halt', `BQL counted a stall (${status.stallCount} in all)`, nowUs);
    }
  }

  #tellBql(): void {
    if (this.#status === undefined) return;
    this.#tell(describeStatus(this.#status, this.#bqlUse, this.#limits.unlimitedBytes));
    const problem = bqlProblem(this.#netdev, this.#bqlUse, this.#options.system.kernelRelease);
    if (problem === undefined) this.#observer.handleCured('no-bql');
    else this.#observer.handleProblem(problem);
  }

  // ---- samples ----

  get bql(): 'none' | 'off' | 'on' {
    if (this.#bqlUse === 'absent' || this.#bqlUse === 'unused') return 'none';
    return this.#limits.isEnabled ? 'on' : 'off';
  }

  get qdisc(): QdiscReading | undefined {
    return this.#qdisc.latest;
  }

  requestQdisc(nowUs: number): void {
    this.#qdisc.request(nowUs);
  }

  /** After each sample: what BQL is to the netdev, and whether anything moves. */
  #watchProgress(nowUs: number): void {
    const { inflightBytes, limitBytes, counters } = this.#reader.sample;
    this.#judgeBql(limitBytes, inflightBytes, counters.tx_packets);
    const stands =
      inflightBytes > 0 &&
      inflightBytes === this.#progressInflightBytes &&
      counters.tx_bytes === this.#progressBytes;
    if (!stands) {
      this.#progressBytes = counters.tx_bytes;
      this.#progressInflightBytes = inflightBytes;
      this.#progressAtUs = nowUs;
    }
    this.#setStalled(nowUs - this.#progressAtUs >= stallUs, nowUs, inflightBytes);
  }

  #judgeBql(limitBytes: number, inflightBytes: number, txPackets: number): void {
    if (this.#bqlUse !== 'unknown' && this.#bqlUse !== 'unused') return;
    if (Number.isNaN(this.#firstTxPackets)) this.#firstTxPackets = txPackets;
    const hasSent = txPackets - this.#firstTxPackets >= packetsWithoutLimit;
    const use = limitBytes > 0 || inflightBytes > 0 ? 'used' : hasSent ? 'unused' : this.#bqlUse;
    if (use === this.#bqlUse) return;
    this.#bqlUse = use;
    this.#tellBql();
  }

  #setStalled(isStalled: boolean, nowUs: number, inflightBytes: number): void {
    if (isStalled === this.#isStalled) return;
    this.#isStalled = isStalled;
    this.#observer.handleStalled(isStalled);
    if (!isStalled) {
      this.#observer.handleCured('stalled');
      this.#observer.handleEvent('halt', 'bytes move again', nowUs);
      return;
    }
    this.#observer.handleEvent('halt', `nothing moved for ${stallUs / 1e6} s`, nowUs);
    this.#observer.handleProblem({
      id: 'stalled',
      severity: 'error',
      message: `${formatBytes(inflightBytes)} are in flight and the device takes none of them.`,
      remedy:
        'Check the radio and the cable; if it does not recover, unplug the device and plug it in again.',
    });
  }

  // ---- settings ----

  /** Changes what can be changed here: BQL's limits, where that is permitted, and the ping. There is no load of ours. */
  configure(changes: LiveSettings, nowUs: number): void {
    if (changes.ping !== undefined) {
      const ping = { ...this.#settings.ping, ...definedOnly(changes.ping) };
      this.#settings = { ...this.#settings, ping };
      this.#link.configurePing(ping, nowUs);
    }
    if (changes.bql === undefined) return;
    this.#setLimits(definedOnly(changes.bql), nowUs);
  }

  /** What was asked for is set; all other settings become what they are on the netdev. */
  #applySettings(nowUs: number): void {
    const asked = requestIn(this.#settings.bql);
    this.#adoptSettings();
    if (Object.keys(asked).length > 0) this.#setLimits(asked, nowUs);
    this.#observer.handleSettings(this.#settings);
  }

  #setLimits({ enabled, ...changes }: LimitRequest, nowUs: number): void {
    const limits = this.#limits;
    const wasEnabled = limits.isEnabled;
    const failure = limits.set(changes) ?? (enabled === undefined ? undefined : limits.setEnabled(enabled));
    this.#adoptSettings();
    this.#tellFailure(failure);
    if (limits.isEnabled === wasEnabled) return;
    const word = limits.isEnabled ? 'on' : 'off';
    this.#observer.handleEvent(limits.isEnabled ? 'bql-on' : 'bql-off', `BQL ${word}`, nowUs);
  }

  /** Makes our settings those that are in force. */
  #adoptSettings(): void {
    const limits = this.#limits;
    if (this.#netdev.bqlQueues.length === 0) return;
    const { limitMinBytes, limitMaxBytes, holdTimeMs } = limits.settings;
    this.#settings = {
      ...this.#settings,
      bql: {
        enabled: limits.isEnabled,
        limitMinBytes,
        limitMaxBytes,
        holdTimeMs: Math.min(holdTimeMs, longestHoldTimeMs),
      },
    };
  }

  #tellFailure(failure: LimitFailure | undefined): void {
    const id = failure === undefined ? undefined : `limits-${failure.kind}`;
    if (this.#limitsProblem !== undefined && this.#limitsProblem !== id) {
      this.#observer.handleCured(this.#limitsProblem);
    }
    this.#limitsProblem = id;
    if (failure === undefined || id === undefined) return;
    const { message, remedy } = failure;
    const rest = remedy === undefined ? {} : { remedy };
    this.#observer.handleProblem({ id, severity: 'warning', message, ...rest });
  }

  // ---- end ----

  stop(nowUs: number, done: (error: AppError | undefined, nowUs: number) => void): void {
    this.release();
    done(undefined, nowUs);
  }

  /** Ends all programs, closes all files and puts the limits back; also after a failure. Says what could not be. */
  release(): readonly NotReturned[] {
    if (this.#isOver) return this.#notReturned;
    this.#isOver = true;
    this.#statusAtUs = neverUs;
    this.#sampler.stop();
    this.#link.close();
    this.#qdisc.close();
    this.#reader.close();
    this.#notReturned.push(...this.#limits.restore());
    return this.#notReturned;
  }

  // ---- time ----

  poll(nowUs: number): void {
    this.#sampler.poll(nowUs);
    this.#link.poll(nowUs);
    if (this.#reader.isGone) this.#handleVanished(nowUs);
    if (nowUs >= this.#statusAtUs) this.#readStatus(nowUs);
  }

  pollAtUs(): number {
    return Math.min(this.#sampler.pollAtUs(), this.#link.pollAtUs(), this.#statusAtUs);
  }

  /** Waits aside; what comes of it is dealt with unless it is over by then. */
  #later<Value>(promise: Promise<Value>, handle: (value: Value, nowUs: number) => void): void {
    void promise.then((value) =>
      this.#options.run((nowUs) => {
        if (!this.#isOver) handle(value, nowUs);
      }),
    );
  }

  /** Tells facts that are new, or not what they were. */
  #tell(facts: readonly Fact[]): void {
    const changed = facts.filter(({ name, value }) => this.#facts.get(name) !== value);
    if (changed.length === 0) return;
    for (const { name, value } of changed) this.#facts.set(name, value);
    this.#observer.handleFacts(changed);
  }
}

/**
 * What a session's first settings ask for. A value that is the standard one asks for nothing: to observe is to change
 * nothing.
 */
function requestIn(bql: BqlSettings): LimitRequest {
  const standard = defaultSessionSettings.bql;
  return Object.fromEntries(
    (Object.keys(standard) as (keyof BqlSettings)[])
      .filter((key) => bql[key] !== standard[key])
      .map((key) => [key, bql[key]]),
  );
}

/** The properties that are there: a setting that is given as undefined is not a change. */
function definedOnly<T extends object>(changes: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(changes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]?: Exclude<T[Key], undefined> };
}
