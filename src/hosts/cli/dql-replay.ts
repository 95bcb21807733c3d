import { AppError, exitCodes } from '../../base/errors.ts';
import { ReplayError, replayTrace } from '../../bql/replay.ts';
import type { Command } from './command.ts';
import { textLines } from './files.ts';

export interface DqlReplayOptions {
  readonly file: string;
}

/** `queuescope dql-replay FILE`: one JSON line for each completion of a BQL trace, as our DQL sees it. */
export const dqlReplay: Command<DqlReplayOptions> = async ({ output }, { file }) => {
  try {
    for (const state of replayTrace(textLines(file))) output.json(state);
  } catch (error) {
    if (!(error instanceof ReplayError)) throw error;
    throw new AppError('bad-input', `${file}: ${error.message}`, { details: { file, line: error.line } });
  }
  return exitCodes.ok;
};
