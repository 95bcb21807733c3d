import { fileFailure } from './file-failure.ts';
import { checkIdentity } from './recording-identity.ts';
import { RecordingReader } from './recording-reader.ts';
import { codeOfFailure, SqliteFile } from './sqlite-file.ts';

/**
 * - `recovered`: the file was left behind by a process that was killed; it is whole again, with its end set to the
 *   last that was stored
 * - `complete`: there was nothing to do
 * - `in-use`: another process, or another part of this one, has the file open: it may still be recording
 */
export type RecoverOutcome = 'recovered' | 'complete' | 'in-use';

/**
 * Repairs a recording whose writer was killed: SQLite brings back what is in the WAL, then phases and the recording
 * get the end that nobody wrote. Whether the writer still lives is not guessed: the kernel's file locks say so.
 * @throws AppError `file-failed`: no such file, damaged, or the folder cannot be written
 */
export function recoverRecording(path: string): RecoverOutcome {
  const reader = RecordingReader.open(path);
  let lastTimeUs: number;
  let startedAt: string;
  try {
    const meta = reader.meta();
    if (meta.state !== 'recording') return 'complete';
    startedAt = meta.startedAt;
    lastTimeUs = reader.lastTimeUs();
  } finally {
    reader.close();
  }
  const file = SqliteFile.open(path, 'write', 200);
  try {
    checkIdentity(file);
    // Taking the file out of WAL mode needs it for oneself alone: it fails while any connection is open, in whatever
    // process.
    if (!file.toSingleFile()) return 'in-use';
    file.transaction(() => {
      const put = (key: string, value: unknown): number =>
        file.run('INSERT OR REPLACE INTO meta VALUES (?, ?)', [key, JSON.stringify(value)]);
      file.run('UPDATE phases SET endUs = max(startUs, ?) WHERE endUs IS NULL', [lastTimeUs]);
      put('state', 'recovered');
      put('durationUs', lastTimeUs);
      const startedAtMs = Date.parse(startedAt);
      if (!Number.isNaN(startedAtMs)) put('endedAt', new Date(startedAtMs + lastTimeUs / 1000).toISOString());
    });
    return 'recovered';
  } catch (error) {
    if (codeOfFailure(error).startsWith('SQLITE_BUSY')) return 'in-use';
    throw fileFailure('recovered', path, error);
  } finally {
    file.close();
  }
}
