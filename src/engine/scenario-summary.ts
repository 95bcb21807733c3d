import { AppError } from '../base/errors.ts';
import type { ScenarioSummary } from '../contract/experiment.ts';
import { builtInScenarios } from '../probes/built-in-scenarios.ts';
import { planDurationUs, planExperiment, planNotes } from '../probes/experiment.ts';
import { parseScenario } from '../probes/parse-scenario.ts';
import type { Scenario } from '../probes/scenario.ts';

/** A scenario as it is offered. */
export function summaryOfScenario(scenario: Scenario): ScenarioSummary {
  const plan = planExperiment(scenario);
  const left = planNotes(scenario, plan);
  const { name, description, calibration, device, arms, phases, maxDataBytes } = scenario;
  return {
    name,
    description,
    ...(calibration === undefined ? {} : { calibration }),
    ...(device === undefined ? {} : { device }),
    seconds: planDurationUs(plan) / 1e6,
    segments: plan.length,
    arms: arms.map((arm) => arm.name),
    directions: [...new Set(phases.map(({ direction }) => direction))],
    ...(left.length === 0 ? {} : { withoutTap: left.join('; ') }),
    ...(maxDataBytes === undefined ? {} : { maxDataBytes }),
  };
}

/**
 * The scenario that comes with the engine under that name, or the one whose JSON text it is.
 * @throws AppError `bad-input` naming line and field, or the names there are
 */
export function scenarioOf(nameOrText: string): Scenario {
  const known = builtInScenarios();
  const found = known.find(({ name }) => name === nameOrText);
  if (found !== undefined) return found;
  if (!nameOrText.trimStart().startsWith('{')) {
    throw new AppError('bad-input', `there is no scenario "${nameOrText}"`, {
      remedy: `Scenarios that come with Queuescope: ${known.map(({ name }) => name).join(', ')}`,
    });
  }
  const parsed = parseScenario(nameOrText);
  if (!parsed.ok) throw new AppError('bad-input', `it is no scenario:\n${parsed.problem}`);
  return parsed.scenario;
}
