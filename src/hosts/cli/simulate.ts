import { exitCodes } from '../../base/errors.ts';
import { simulate as runSimulation } from '../../engine/simulation.ts';
import type { Command } from './command.ts';
import { outcomeTable, verdictLines, volumeWords } from './experiment-words.ts';
import { loadScenario } from './scenarios.ts';

export interface SimulateOptions {
  readonly scenario: string;
  /** Bytes that may be sent and received together. */
  readonly maxData?: number;
  readonly json: boolean;
}

/** `queuescope simulate`: a scenario in virtual time, as fast as the machine can. */
export const simulate: Command<SimulateOptions> = async ({ output }, { scenario: name, maxData, json }) => {
  const scenario = loadScenario(name);
  const result = runSimulation(
    maxData === undefined
      ? scenario
      : { ...scenario, maxDataBytes: Math.min(maxData, scenario.maxDataBytes ?? maxData) },
  );
  const passed = result.criteria.every((criterion) => criterion.passed);
  const exitCode = passed ? exitCodes.ok : exitCodes.verdictFailed;
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
