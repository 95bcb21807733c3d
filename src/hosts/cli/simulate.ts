import { exitCodes } from '../../base/errors.ts';
import { setImmediate } from 'node:timers/promises';
import { type SimulationResult, simulationSteps } from '../../engine/simulation.ts';
import type { Scenario } from '../../probes/scenario.ts';
import type { Command } from './command.ts';
import { outcomeTable, verdictLines, volumeWords } from './experiment-words.ts';
import { loadScenario } from './scenarios.ts';

export interface SimulateOptions {
  readonly scenario: string;
  /** Bytes that may be sent and received together. */
  readonly maxData?: number;
  readonly json: boolean;
}

/** `queuescope simulate`: a scenario in virtual time, as fast as the machine can, until it ends or is interrupted. */
export const simulate: Command<SimulateOptions> = async (context, { scenario: name, maxData, json }) => {
  const { output, interrupted } = context;
  const scenario = loadScenario(name);
  const result = await runSimulation(
    maxData === undefined
      ? scenario
      : { ...scenario, maxDataBytes: Math.min(maxData, scenario.maxDataBytes ?? maxData) },
    interrupted,
  );
  const exitCode = exitCodeOf(result, interrupted);
  if (json) {
    output.json(result);
    return exitCode;
  }
  output.line(
    `${result.scenario} on ${result.device}, ${result.simulatedSeconds.toFixed(1)} simulated seconds, ${volumeWords(result.plannedData)}`,
  );
  output.line(outcomeTable(result));
  for (const note of result.notes) output.line(`Note: ${note}`);
  for (const line of verdictLines(result.verdict)) output.line(line);
  if (result.uncalibrated !== null) {
    output.line(`Without the fit: ${result.uncalibrated.description}`);
    output.line(outcomeTable(result.uncalibrated));
  }
  return exitCode;
};

/** Computes for so long before it looks whether somebody wants it to end. */
const turnMs = 50;

async function runSimulation(scenario: Scenario, interrupted: AbortSignal): Promise<SimulationResult> {
  const steps = simulationSteps(scenario, () => interrupted.aborted);
  let turnEndMs = performance.now() + turnMs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() < turnEndMs) continue;
    // Signals are told of between two turns of the event loop.
    await setImmediate();
    turnEndMs = performance.now() + turnMs;
  }
}

function exitCodeOf({ criteria }: SimulationResult, interrupted: AbortSignal): number {
  if (interrupted.aborted) return exitCodes.interrupted;
  return criteria.every((criterion) => criterion.passed) ? exitCodes.ok : exitCodes.verdictFailed;
}
