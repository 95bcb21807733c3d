/** What `queuescope run --json` prints, read without any of its own code: the tests compare it with other witnesses. */
import type { Scenario } from './guest.ts';

/** One line; what a type has beside these is in DESIGN section 4's words: names with units, null for "does not exist". */
export type Line = Readonly<Record<string, unknown>> & { readonly type: string };

export interface RunOutput {
  readonly samples: readonly Line[];
  readonly probes: readonly Line[];
  readonly events: readonly Line[];
  /** The last line, of type `result`; undefined where the run had no time for it. */
  readonly result: Line | undefined;
  /** Frames handed to the device, from the rates of all samples. */
  readonly txPackets: number;
  /** Pings that were answered. */
  readonly answered: number;
  /** Time of the last sample, µs. */
  readonly lastSampleUs: number;
}

const microseconds = 1e6;

function numberIn(line: Line | undefined, key: string): number {
  const value = line?.[key];
  return typeof value === 'number' ? value : 0;
}

/** Reads a scenario's file of JSON lines. */
export function readRun(scenario: Scenario, file: string): RunOutput {
  return readRunText(scenario.text(file));
}

/** Reads JSON lines. A last line without its end (a killed run) is left out. */
export function readRunText(text: string): RunOutput {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const lines = whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
  const ofType = (type: string): Line[] => lines.filter((line) => line.type === type);
  const samples = ofType('sample');
  let txPackets = 0;
  let beforeUs = 0;
  for (const sample of samples) {
    const timeUs = numberIn(sample, 'timeUs');
    txPackets += (numberIn(sample, 'txPacketsPerSecond') * (timeUs - beforeUs)) / microseconds;
    beforeUs = timeUs;
  }
  const probes = ofType('probe');
  return {
    samples,
    probes,
    events: ofType('event'),
    result: ofType('result').at(-1),
    txPackets,
    answered: probes.filter((probe) => typeof probe['rttUs'] === 'number').length,
    lastSampleUs: beforeUs,
  };
}
