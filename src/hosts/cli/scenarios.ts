import { existsSync } from 'node:fs';
import { AppError } from '../../base/errors.ts';
import { builtInScenarios } from '../../probes/built-in-scenarios.ts';
import { parseScenario } from '../../probes/parse-scenario.ts';
import type { Scenario } from '../../probes/scenario.ts';
import { readTextFile } from './files.ts';

/**
 * The scenario that a name or a file stands for; a name that comes with Queuescope wins.
 * @throws AppError `bad-input` naming what is wrong with the file, or the names there are
 */
export function loadScenario(nameOrFile: string): Scenario {
  const known = builtInScenarios();
  const builtIn = known.find((scenario) => scenario.name === nameOrFile);
  if (builtIn !== undefined) return builtIn;
  if (!existsSync(nameOrFile)) {
    const names = known.map((scenario) => scenario.name).join(', ');
    throw new AppError('bad-input', `there is no scenario and no file "${nameOrFile}"`, {
      remedy: `Scenarios that come with Queuescope: ${names}`,
    });
  }
  const result = parseScenario(readTextFile(nameOrFile));
  if (!result.ok) throw new AppError('bad-input', `${nameOrFile} is no scenario:\n${result.problem}`);
  return result.scenario;
}
