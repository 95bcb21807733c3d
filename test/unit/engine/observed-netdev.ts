import { join } from 'node:path';
import type { AppError } from '../../../src/base/errors.ts';
import type { Problem } from '../../../src/contract/problem.ts';
import type { Fact, SessionEvent, Stage, StageName } from '../../../src/contract/session.ts';
import { defaultSessionSettings, type SessionSettings } from '../../../src/contract/settings.ts';
import {
  probeColumns,
  type ProbeColumn,
  sampleColumns,
  type SampleColumn,
} from '../../../src/contract/telemetry.ts';
import { noLag } from '../../../src/engine/event-loop-lag.ts';
import type { MeasurementObserver } from '../../../src/engine/measurement-path.ts';
import { ObservePath } from '../../../src/engine/observe-path.ts';
import type { ObserveSystem } from '../../../src/engine/observe-system.ts';
import { LimitsJournal } from '../../../src/observe/limits-journal.ts';
import { NetdevFiles } from '../../../src/observe/netdev-files.ts';
import { FakeNetdevs } from '../observe/fake-netdevs.ts';
import { FakePrograms } from '../observe/fake-programs.ts';

const startUs = 1_000_000;

/** Keeps what a path reports. */
export class Report implements MeasurementObserver {
  readonly samples: Record<SampleColumn, number>[] = [];
  readonly probes: Record<ProbeColumn, number>[] = [];
  readonly events: { readonly kind: SessionEvent['kind']; readonly text: string }[] = [];
  readonly stages = new Map<
    StageName,
    { readonly status: Stage['status']; readonly text: string | undefined }
  >();
  readonly facts = new Map<string, string>();
  readonly problems = new Map<string, Problem>();
  losses = 0;
  readonly stalled: boolean[] = [];
  settings: SessionSettings | undefined;

  handleStage(name: StageName, status: Stage['status'], text: string | undefined): void {
    this.stages.set(name, { status, text });
  }
  handleFacts(facts: readonly Fact[]): void {
    for (const { name, value } of facts) this.facts.set(name, value);
  }
  handleSettings(settings: SessionSettings): void {
    this.settings = settings;
  }
  handleSample(row: Float64Array): void {
    this.samples.push(named(sampleColumns, row));
  }
  handleProbe(row: Float64Array): void {
    this.probes.push(named(probeColumns, row));
  }
  handleEvent(kind: SessionEvent['kind'], text: string): void {
    this.events.push({ kind, text });
  }
  handleProblem(problem: Problem): void {
    this.problems.set(problem.id, problem);
  }
  handleReopen(): void {}
  handleCured(problemId: string): void {
    this.problems.delete(problemId);
  }
  handleStalled(stalled: boolean): void {
    this.stalled.push(stalled);
  }
  handleFailure(error: AppError): void {
    throw error;
  }
  handleGone(): void {
    this.losses++;
  }
}

function named<Column extends string>(columns: readonly Column[], row: Float64Array): Record<Column, number> {
  return Object.fromEntries(columns.map((column, index) => [column, row[index]])) as Record<Column, number>;
}

/** Knows whether anything is still being read. */
class CountingFiles extends NetdevFiles {
  readonly #pending = new Set<Promise<unknown>>();

  #count<Value>(promise: Promise<Value>): Promise<Value> {
    this.#pending.add(promise);
    void promise.finally(() => this.#pending.delete(promise));
    return promise;
  }

  /** Resolves once everything was read, and what follows from it as well. */
  async idle(): Promise<void> {
    do {
      await Promise.all(this.#pending);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    } while (this.#pending.size > 0);
  }

  override describe(name: string): ReturnType<NetdevFiles['describe']> {
    return this.#count(super.describe(name));
  }
  override index(name: string): ReturnType<NetdevFiles['index']> {
    return this.#count(super.index(name));
  }
  override carrier(name: string): ReturnType<NetdevFiles['carrier']> {
    return this.#count(super.carrier(name));
  }
  override gateway(name: string): ReturnType<NetdevFiles['gateway']> {
    return this.#count(super.gateway(name));
  }
  override linkBitsPerSecond(name: string): ReturnType<NetdevFiles['linkBitsPerSecond']> {
    return this.#count(super.linkBitsPerSecond(name));
  }
}

/** A path over a folder that looks like a Linux system, in time that the test lets pass. */
export class ObservedNetdev {
  readonly system = new FakeNetdevs();
  readonly programs = new FakePrograms();
  readonly report = new Report();
  readonly files: CountingFiles;
  readonly journal: LimitsJournal;
  addresses: readonly string[] = ['10.9.0.2/24'];
  kernelRelease = '6.19.0';
  nowUs = startUs;
  #path: ObservePath | undefined;

  constructor() {
    this.files = new CountingFiles(this.system.root);
    this.journal = new LimitsJournal(join(this.system.root, 'run/queuescope'));
    this.system.routes([['usb0', '0100090A', 100]]);
  }

  get path(): ObservePath {
    if (this.#path === undefined) throw new Error('it was not started');
    return this.#path;
  }

  get observeSystem(): ObserveSystem {
    return {
      files: this.files,
      journal: this.journal,
      startProgram: this.programs.start,
      kernelRelease: this.kernelRelease,
      addressesOf: () => this.addresses,
      wallClockUs: () => this.nowUs,
    };
  }

  async start(settings: Partial<SessionSettings> = {}): Promise<void> {
    const netdev = await this.files.describe('usb0');
    if (netdev === undefined) throw new Error('usb0 is there');
    this.#path = new ObservePath({
      settings: { ...defaultSessionSettings, ...settings },
      seed: 1,
      observer: this.report,
      startUs,
      system: this.observeSystem,
      netdev,
      lag: noLag,
      run: (action) => action(this.nowUs),
    });
    this.path.start(this.nowUs);
    await this.files.idle();
  }

  /** Lets time pass as a loop would, and waits for what is read aside. */
  async pass(us: number): Promise<void> {
    const endUs = this.nowUs + us;
    while (this.path.pollAtUs() <= endUs) {
      this.nowUs = Math.max(this.nowUs, this.path.pollAtUs());
      this.path.poll(this.nowUs);
      for (const tc of this.programs.of('tc')) this.#answer(tc.written, (line) => tc.say(line));
    }
    this.nowUs = endUs;
    await this.files.idle();
  }

  backlogBytes = 0;
  qdiscDrops = 0;
  readonly #answered = new WeakMap<object, number>();

  #answer(questions: readonly string[], say: (line: string) => void): void {
    const answered = this.#answered.get(questions) ?? 0;
    for (let i = answered; i < questions.length; i++) {
      const qdisc = { kind: 'pfifo_fast', root: true, drops: this.qdiscDrops, requeues: 0 };
      say(JSON.stringify([{ ...qdisc, backlog: this.backlogBytes, qlen: this.backlogBytes / 1514 }]));
    }
    this.#answered.set(questions, questions.length);
  }

  newestSample(): Record<SampleColumn, number> {
    const sample = this.report.samples.at(-1);
    if (sample === undefined) throw new Error('there is no sample');
    return sample;
  }

  dispose(): void {
    this.#path?.release();
    this.system.dispose();
  }
}
