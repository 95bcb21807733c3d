import { formatBitRate, formatBytes, formatDuration } from '../../base/units.ts';
import type { ExperimentVerdict } from '../../contract/experiment.ts';
import type { Session } from '../../contract/session.ts';
import {
  forEachRow,
  probeColumns,
  probeIndex,
  sampleColumns,
  sampleIndex,
} from '../../contract/telemetry.ts';
import type { DeviceSession } from '../../engine/device-session.ts';
import type { ExperimentOutcome } from '../../engine/experiment-outcome.ts';
import { outcomeTable, verdictLines } from './experiment-words.ts';
import type { Output } from './output.ts';
import { rowLines } from './row-line.ts';

const progressIntervalUs = 1e6;
const sampleLine = rowLines('sample', sampleColumns);
const probeLine = rowLines('probe', probeColumns);

/** Tells what happens in a session: as JSON lines, or as notes for a person. */
export class Follower {
  readonly #session: DeviceSession;
  readonly #output: Output;
  readonly #json: boolean;
  #progressUs = 0;
  #lastRttUs = Number.NaN;

  constructor(session: DeviceSession, output: Output, json: boolean) {
    this.#session = session;
    this.#output = output;
    this.#json = json;
    if (json) output.json({ type: 'session', session: session.snapshot });
    for (const event of session.events) this.#handleEvent(event.kind, event.text, event.timeUs);
    session.onEvent((event) => this.#handleEvent(event.kind, event.text, event.timeUs));
    session.subscribe('samples', 0, ({ values }) =>
      forEachRow('samples', values, (row) => this.#handleSample(row)),
    );
    session.subscribe('probes', 0, ({ values }) =>
      forEachRow('probes', values, (row) => this.#handleProbe(row)),
    );
  }

  #handleEvent(kind: string, text: string, timeUs: number): void {
    if (this.#json) this.#output.json({ type: 'event', timeUs, kind, text });
    else this.#output.note(`${(timeUs / 1e6).toFixed(1).padStart(7)} s  ${text}`);
  }

  #handleSample(row: Float64Array): void {
    if (this.#json) {
      this.#output.document(sampleLine(row));
      return;
    }
    const timeUs = row[sampleIndex.timeUs] ?? 0;
    if (timeUs < this.#progressUs) return;
    this.#progressUs = timeUs + progressIntervalUs;
    this.#output.note(
      `${(timeUs / 1e6).toFixed(1).padStart(7)} s  ping ${formatDuration(this.#lastRttUs)}` +
        `  in flight ${formatBytes(row[sampleIndex.inflightBytes] ?? 0)}` +
        `  limit ${formatBytes(row[sampleIndex.limitBytes] ?? Number.NaN)}` +
        `  up ${formatBitRate(row[sampleIndex.txBitsPerSecond] ?? 0)}`,
    );
  }

  #handleProbe(row: Float64Array): void {
    this.#lastRttUs = row[probeIndex.rttUs] ?? Number.NaN;
    if (this.#json) this.#output.document(probeLine(row));
  }

  /** The last word: what each segment measured, what it comes to, and what became of the device. */
  finish(
    ended: Session,
    result: {
      readonly scenario: string;
      readonly outcome: ExperimentOutcome;
      readonly verdict?: ExperimentVerdict | undefined;
      readonly notes?: readonly string[];
      readonly dataBytes?: number;
    },
  ): void {
    const { scenario, outcome, verdict, notes = [], dataBytes } = result;
    if (this.#json) {
      this.#output.json({
        type: 'result',
        scenario,
        state: ended.state,
        ...outcome,
        notes,
        ...(dataBytes === undefined ? {} : { dataBytes }),
        ...(verdict === undefined ? {} : { verdict }),
        session: ended,
      });
      return;
    }
    const { idle, segments } = outcome;
    if (idle !== null || segments.length > 0) this.#output.line(outcomeTable(outcome));
    if (verdict !== undefined) for (const line of verdictLines(verdict)) this.#output.line(line);
    for (const note of notes) this.#output.note(`note: ${note}`);
    // A file that could not even be made has no size.
    if (ended.recording !== undefined && ended.recording.sizeBytes > 0) {
      this.#output.note(`recorded in ${this.#session.recorder?.status.path ?? ended.recording.fileName}`);
    }
    for (const problem of ended.problems) {
      if (problem.id === 'failed' || problem.id === 'gone') continue;
      this.#output.note(`${problem.severity}: ${problem.message}`);
      if (problem.remedy !== undefined) this.#output.note(problem.remedy);
    }
  }
}
