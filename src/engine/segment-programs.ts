import type { LineProgram, StartProgram } from '../observe/line-program.ts';
import { runProgram } from '../observe/line-program.ts';
import type { ExperimentPhase } from '../probes/experiment.ts';
import type { Scenario, ScenarioLoad } from '../probes/scenario.ts';
import type { DeviceSession } from './device-session.ts';
import type { IperfSummary, IrttSummary } from './experiment-segments.ts';
import { type IperfReport, readIperf } from './iperf3-output.ts';
import { readIrtt } from './irtt-output.ts';

/** A program that answers a question about itself has no reason to take longer. */
const versionLimitMs = 3000;
const connectLimitMs = 2000;
const priorityTos = 0x10;
/** Beyond its segment, of a program that we did not end. */
const graceSeconds = 3;
/** Of what one program writes in a segment. */
const bytesKept = 8_000_000;

/** What the programs of a segment have to say at its end. */
export interface ProgramsReport {
  readonly notes: readonly string[];
  /** It was not loaded as it was meant to be. */
  readonly loadFailed: boolean;
  readonly iperf3?: IperfSummary;
  readonly irtt?: IrttSummary;
}

/** One program that runs. */
interface Running {
  readonly name: 'iperf3' | 'irtt';
  readonly program: LineProgram;
  readonly lines: string[];
  bytes: number;
  ended: { readonly isMissing: boolean; readonly lastError: string } | undefined;
}

/**
 * The stock programs iperf3 (load) and irtt (one-way delay and loss) on the host's side of a TAP interface. Each runs for
 * one segment at most: what has not ended by the end of its segment is ended then, so a server that vanishes holds nothing
 * up. What they write goes into the recording as they write it.
 */
export class SegmentPrograms {
  readonly #start: StartProgram;
  readonly #scenario: Scenario;
  #session: DeviceSession | undefined;
  #streams = false;
  #missing = new Set<string>();
  #running: Running[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(start: StartProgram, scenario: Scenario) {
    this.#start = start;
    this.#scenario = scenario;
  }

  /** Finds out which programs there are, and what they can. */
  async prepare(session: DeviceSession, note: (text: string) => void): Promise<void> {
    this.#session = session;
    const { load, phases, probes } = this.#scenario;
    const wantsIperf = [load, ...phases.map((phase) => phase.load)].some(
      (candidate) => candidate !== undefined && candidate.generator !== 'udp',
    );
    if (wantsIperf) {
      const { isMissing, lines } = await runProgram(this.#start, 'iperf3', ['--version'], versionLimitMs);
      const version = /iperf (\d+)\.(\d+)/.exec(lines.join('\n'));
      const [major = 0, minor = 0] = [Number(version?.[1]), Number(version?.[2])];
      // Older ones write all of their JSON at the end.
      this.#streams = major > 3 || (major === 3 && minor >= 17);
      if (isMissing) {
        this.#missing.add('iperf3');
        note('iperf3 is not installed: what it was to load is left out');
      }
    }
    if (probes.some(({ kind }) => kind === 'irtt')) {
      const { isMissing } = await runProgram(this.#start, 'irtt', ['version'], versionLimitMs);
      if (isMissing) {
        this.#missing.add('irtt');
        note('irtt is not installed: one-way delays are not measured');
      }
    }
  }

  startSegment(phase: ExperimentPhase): void {
    this.#stopAll();
    const target = this.#target;
    if (target === undefined) return;
    if (phase.by === 'iperf3-tcp' || phase.by === 'iperf3-udp') this.#startIperf(phase, target);
    const probe = this.#scenario.probes.find(({ kind }) => kind === 'irtt');
    if (probe === undefined) return;
    // Only what counts is probed.
    this.#timer = setTimeout(() => this.#startIrtt(phase, probe, target), phase.settleUs / 1000);
  }

  get #target(): string | undefined {
    return this.#session?.snapshot.facts.find(({ name }) => name === 'Target')?.value;
  }

  #startIperf(phase: ExperimentPhase, target: string): void {
    const { load } = phase.settings;
    if (load === undefined || this.#missing.has('iperf3')) return;
    const tap = this.#session?.snapshot.settings.tap;
    this.#run('iperf3', phase, [
      `--client=${target}`,
      `--port=${load.port}`,
      // What counts is the same for both: whole seconds.
      `--omit=${Math.floor(phase.settleUs / 1e6)}`,
      `--time=${secondsOf(phase)}`,
      `--connect-timeout=${connectLimitMs}`,
      this.#streams ? '--json-stream' : '--json',
      ...(tap === undefined ? [] : ['--bind-dev', tap]),
      ...iperfLoad(phase, load),
    ]);
  }

  #startIrtt(phase: ExperimentPhase, probe: Scenario['probes'][number], target: string): void {
    if (this.#missing.has('irtt')) return;
    const seconds = (phase.durationUs - phase.tailUs - phase.settleUs) / 1e6;
    this.#run('irtt', phase, [
      'client',
      '-i',
      `${probe.intervalMs}ms`,
      '-d',
      `${Math.round(seconds * 1000)}ms`,
      '-l',
      String(probe.payloadBytes),
      `--dscp=0x${(probe.priority ? priorityTos : 0).toString(16)}`,
      // To be found, and to end, within the segment's tail.
      '--timeouts=500ms,1s',
      '--wait=1s',
      // Nothing on standard output but the document.
      '-Q',
      '-o',
      '-',
      probe.target ?? target,
    ]);
  }

  #run(name: Running['name'], phase: ExperimentPhase, programArguments: readonly string[]): void {
    const lines: string[] = [];
    const limit = String(Math.ceil(phase.durationUs / 1e6) + graceSeconds);
    const running: Running = {
      name,
      lines,
      bytes: 0,
      ended: undefined,
      // The host ends it if we can't any more.
      program: this.#start('timeout', ['--signal=KILL', limit, name, ...programArguments], {
        handleLine: (line) => {
          running.bytes += line.length;
          if (running.bytes > bytesKept) return;
          lines.push(line);
          if (name === 'iperf3' && this.#streams) this.#session?.keepLine(name, phase.name, line);
        },
        handleErrorLine: () => {},
        handleEnd: (end) => {
          running.ended = end;
        },
      }),
    };
    this.#running.push(running);
  }

  /** Ends what still runs, and says what they found. */
  endSegment(phase: ExperimentPhase): ProgramsReport {
    const notes: string[] = [];
    let loadFailed = (phase.by === 'iperf3-tcp' || phase.by === 'iperf3-udp') && this.#missing.has('iperf3');
    let iperf3: IperfSummary | undefined;
    let irtt: IrttSummary | undefined;
    for (const running of this.#running) {
      const text = running.lines.join('\n');
      if (!(running.name === 'iperf3' && this.#streams) && text !== '') {
        this.#session?.keepLine(running.name, phase.name, text);
      }
      if (running.ended === undefined) {
        notes.push(`${running.name} had not ended and was ended`);
        if (running.name === 'iperf3') loadFailed = true;
      }
      if (running.name === 'iperf3') {
        const report: IperfReport = readIperf(text, phase.direction);
        iperf3 = report.summary;
        const problem = report.error ?? (report.summary === undefined ? running.ended?.lastError : undefined);
        if (problem !== undefined && problem !== '') {
          notes.push(`iperf3: ${problem}`);
          loadFailed = true;
        }
      } else {
        irtt = readIrtt(text);
        if (irtt === undefined && running.ended !== undefined) {
          notes.push(`irtt: ${running.ended.lastError || 'it said nothing'}`);
        }
      }
    }
    this.#stopAll();
    return {
      notes,
      loadFailed,
      ...(iperf3 === undefined ? {} : { iperf3 }),
      ...(irtt === undefined ? {} : { irtt }),
    };
  }

  #stopAll(): void {
    clearTimeout(this.#timer);
    for (const { program, ended } of this.#running) if (ended === undefined) program.stop();
    this.#running = [];
  }

  /** Ends all that still runs. */
  close(): void {
    this.#stopAll();
  }
}

/** Of sending, without what is omitted. */
function secondsOf(phase: ExperimentPhase): number {
  return Math.max(1, Math.round((phase.durationUs - phase.tailUs) / 1e6) - Math.floor(phase.settleUs / 1e6));
}

function iperfLoad(phase: ExperimentPhase, load: ScenarioLoad): readonly string[] {
  const way = { up: [], down: ['-R'], both: ['--bidir'], idle: [] }[phase.direction];
  const rate = phase.direction === 'down' ? load.downRateBitsPerSecond : load.rateBitsPerSecond;
  const streams = load.streams > 1 ? ['-P', String(load.streams)] : [];
  const perStream = String(Math.ceil(rate / load.streams));
  if (phase.by === 'iperf3-udp') {
    return [...way, ...streams, '-u', '-b', perStream, '-l', String(load.payloadBytes)];
  }
  return [...way, ...streams, ...(rate > 0 ? ['-b', perStream] : [])];
}
