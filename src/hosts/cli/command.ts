import type { Log } from '../../base/log.ts';
import type { RunningEngine } from '../bootstrap.ts';
import type { Output } from './output.ts';

/** What every command gets. */
export interface CommandContext {
  readonly output: Output;
  readonly log: Log;
  /** Puts the engine together; closed by whoever runs the command. */
  engine(host: 'cli' | 'web'): Promise<RunningEngine>;
  /** Aborted when the user interrupts (Ctrl-C, SIGTERM). */
  readonly interrupted: AbortSignal;
  /** Folder of the built page. */
  readonly rendererFolder: string;
}

/** Answers with the exit code; throws AppError for a failure. */
export type Command<Options> = (context: CommandContext, options: Options) => Promise<number>;
