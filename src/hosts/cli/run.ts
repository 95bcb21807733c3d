import { errorTable, exitCodes } from '../../base/errors.ts';
import { formatBytes, formatElapsed } from '../../base/units.ts';
import type { DeviceSession } from '../../engine/device-session.ts';
import type { ExperimentRunner, FinishedExperiment } from '../../engine/experiment-runner.ts';
import { dataVolume } from '../../probes/data-volume.ts';
import { type ExperimentPhase, planDurationUs, planExperiment } from '../../probes/experiment.ts';
import type { Scenario } from '../../probes/scenario.ts';
import { findPersonality } from '../../sim/catalogue.ts';
import type { Command, CommandContext } from './command.ts';
import { progressWords, volumeWords } from './experiment-words.ts';
import { Follower } from './follower.ts';
import { type RunOptions, scenarioOf, settingsOf } from './run-options.ts';

/** Between two lines of progress within a segment. */
const progressSeconds = 10;

/**
 * `queuescope run`: drives a device through a scenario, records it if asked to, and gives the device back.
 * With `--json` one JSON line for each thing that happens, the last one of type `result`.
 */
export const run: Command<RunOptions> = async (context, options) => {
  const scenario = scenarioOf(options);
  const settings = settingsOf(options, scenario);
  const plan = options.load ? undefined : asIdle(planExperiment(scenario));
  const { engine } = await context.engine('cli');
  const runner = await engine.startExperiment({
    deviceId: options.device,
    scenario,
    settings,
    ...(plan === undefined ? {} : { plan }),
    record: options.out !== undefined,
    ...(options.out === undefined ? {} : { recordPath: options.out }),
    ...(options.wait === undefined ? {} : { waitMs: options.wait * 1000 }),
  });
  const { session } = runner;
  const follower = new Follower(session, context.output, options.json);
  if (options.scenario !== undefined) announce(context, runner, scenario);
  const stopOnInterrupt = (): void => runner.stop('interrupted');
  context.interrupted.addEventListener('abort', stopOnInterrupt);
  // While the device was looked for, nobody listened.
  if (context.interrupted.aborted) stopOnInterrupt();
  const dispose = options.scenario === undefined ? () => {} : showProgress(context, runner);
  let finished: FinishedExperiment;
  try {
    finished = await runner.finished;
  } finally {
    dispose();
    context.interrupted.removeEventListener('abort', stopOnInterrupt);
    await session.stop();
  }
  const ended = session.snapshot;
  const verdict = options.scenario === undefined && options.bql !== 'ab' ? undefined : runner.status.verdict;
  follower.finish(ended, { scenario: scenario.name, ...finished, verdict });
  if (session.error !== undefined && session.error.kind !== 'cancelled') throw session.error;
  if (context.interrupted.aborted) return exitCodes.interrupted;
  const recorded = recordingExitCode(session);
  if (recorded !== exitCodes.ok) return recorded;
  return finished.outcome.criteria.every(({ passed }) => passed) ? exitCodes.ok : exitCodes.verdictFailed;
};

/** `--no-load`: the time of the run, with nothing but pings. */
function asIdle(phases: readonly ExperimentPhase[]): readonly ExperimentPhase[] {
  const idle = phases.filter((phase) => phase.pair === 0);
  return (idle.length > 0 ? idle : phases).map((phase) => ({
    ...phase,
    name: 'idle',
    kind: 'idle',
    direction: 'idle',
    by: 'none',
  }));
}

/** Says what is going to happen before it does: a SIM costs money. */
function announce(context: CommandContext, runner: ExperimentRunner, scenario: Scenario): void {
  const { device } = runner.session.snapshot;
  const link = findPersonality(device.id.replace(/^sim:/, ''))?.link;
  const volume = dataVolume(scenario, runner.plan, {
    upBitsPerSecond: link?.upBitsPerSecond,
    downBitsPerSecond: link?.downBitsPerSecond,
  });
  const cap = scenario.maxDataBytes === undefined ? '' : `; it ends at ${formatBytes(scenario.maxDataBytes)}`;
  context.output.note(
    `${scenario.name}: ${runner.plan.length} segments, ${formatElapsed(planDurationUs(runner.plan))}, ${volumeWords(volume)}${cap}`,
  );
  for (const note of runner.status.notes) context.output.note(`note: ${note}`);
}

/** A line a segment and every ten seconds, on standard error. Answers with what ends that. */
function showProgress(context: CommandContext, runner: ExperimentRunner): () => void {
  let shown = 0;
  let shownAtLeft = Number.POSITIVE_INFINITY;
  return runner.onChange(() => {
    const { status } = runner;
    if (status.state !== 'running' || status.segment === 0) return;
    if (status.segment === shown && shownAtLeft - status.secondsLeft < progressSeconds) return;
    shown = status.segment;
    shownAtLeft = status.secondsLeft;
    context.output.note(progressWords(status));
  });
}

/** A run whose recording failed has not done what it was asked for. */
export function recordingExitCode(session: DeviceSession): number {
  const failure = session.recorder?.status.failure;
  return failure === undefined ? exitCodes.ok : errorTable[failure.kind].exitCode;
}
