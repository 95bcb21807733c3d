import { exitCodes } from '../../base/errors.ts';
import { formatBytes } from '../../base/units.ts';
import type { Command } from './command.ts';
import { table } from './output.ts';

export interface SessionsOptions {
  readonly json: boolean;
}

/** `queuescope sessions`: the recordings in the library, newest first. */
export const sessions: Command<SessionsOptions> = async (context, { json }) => {
  const { output } = context;
  const { archive } = await context.engine('cli');
  archive.library.recoverAll();
  const recordings = archive.library.list();
  if (json) {
    output.json(recordings);
    return exitCodes.ok;
  }
  if (recordings.length === 0) {
    output.note(`No recordings in ${archive.library.folder}`);
    return exitCodes.ok;
  }
  output.line(
    table([
      ['FILE', 'STATE', 'DEVICE', 'LENGTH', 'SIZE'],
      ...recordings.map((recording) => [
        recording.path,
        recording.state,
        recording.deviceName,
        `${(recording.durationUs / 1e6).toFixed(0)} s`,
        formatBytes(recording.sizeBytes),
      ]),
    ]),
  );
  for (const { fileName, state, reason } of recordings) {
    if (reason === undefined) continue;
    // Why a file cannot be read names it already.
    output.note(state === 'damaged' ? reason : `${fileName} ended before its time: ${reason}`);
  }
  return exitCodes.ok;
};
