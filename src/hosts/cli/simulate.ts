import { exitCodes } from '../../base/errors.ts';
import { formatBitRate, formatBytes, formatDuration } from '../../base/units.ts';
import type { PhaseStatistics } from '../../engine/phase-statistics.ts';
import { simulate as runSimulation } from '../../engine/simulation.ts';
import type { Command } from './command.ts';
import { table } from './output.ts';
import { loadScenario } from './scenarios.ts';

export interface SimulateOptions {
  readonly scenario: string;
  readonly json: boolean;
}

/** `queuescope simulate`: a scenario in virtual time, as fast as the machine can. */
export const simulate: Command<SimulateOptions> = async ({ output }, { scenario, json }) => {
  const result = runSimulation(loadScenario(scenario));
  if (json) {
    output.json(result);
    return exitCodes.ok;
  }
  output.line(
    `${result.scenario} on ${result.device}, ${result.simulatedSeconds.toFixed(1)} simulated seconds`,
  );
  output.line(
    phaseTable([...(result.idle === null ? [] : [{ name: 'idle', ...result.idle }]), ...result.segments]),
  );
  return exitCodes.ok;
};

/** Phases side by side, for people. */
export function phaseTable(phases: readonly (PhaseStatistics & { readonly name: string })[]): string {
  const header = ['PHASE', 'PING P50', 'P95', 'P99', 'LOST', 'THROUGHPUT', 'IN FLIGHT P50', 'LIMIT P50'];
  return table([
    header,
    ...phases.map((phase) => [
      phase.name,
      formatDuration(phase.rttUs.p50 ?? Number.NaN),
      formatDuration(phase.rttUs.p95 ?? Number.NaN),
      formatDuration(phase.rttUs.p99 ?? Number.NaN),
      `${phase.lost} of ${phase.probes}`,
      formatBitRate(phase.throughputBitsPerSecond ?? Number.NaN),
      formatBytes(phase.inflightBytes.p50 ?? Number.NaN),
      formatBytes(phase.limitBytes.p50 ?? Number.NaN),
    ]),
  ]);
}
