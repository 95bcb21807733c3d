import type { AppError } from '../base/errors.ts';
import { contentFailure } from './file-failure.ts';
import { applicationId, schemaVersion, tableNames } from './session-schema.ts';
import type { SqliteFile } from './sqlite-file.ts';

/**
 * Refuses what is not a recording, what is one of a time to come, and what would compute something when it is read.
 * @throws AppError `file-failed`
 */
export function checkIdentity(file: SqliteFile): void {
  if (file.pragma('application_id') !== applicationId) {
    throw contentFailure(
      file.path,
      'it is not a recording of Queuescope',
      'Choose a file that ends in .qscope.',
    );
  }
  const version = Number(file.pragma('user_version'));
  if (version > schemaVersion) {
    throw contentFailure(
      file.path,
      `it was made by a newer Queuescope (schema ${version}; this one knows ${schemaVersion})`,
      'Update Queuescope, then open the file again.',
    );
  }
  checkTables(file);
}

/**
 * A file may come from anybody. Where a view or a generated column stands in place of what was stored, reading it can
 * take for ever, or all memory; a trigger would run when a recording of a killed process is put right.
 */
function checkTables(file: SqliteFile): void {
  const triggers = file.rows(`SELECT name FROM recording.sqlite_schema WHERE type = 'trigger'`);
  if (triggers.length > 0) throw alienFailure(file, 'it has triggers');
  for (const [name, type] of file.rows('SELECT name, type FROM pragma_table_list WHERE schema = ?', [
    'recording',
  ])) {
    if (typeof name !== 'string' || !isOwnTable(name)) continue;
    if (type !== 'table') throw alienFailure(file, `${name} is no table in it`);
    // 2 and 3: generated columns.
    const generated = file.rows('SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden <> 0', [name]);
    if (generated.length > 0) throw alienFailure(file, `its table ${name} has generated columns`);
  }
}

/** SQLite does not tell upper from lower case. */
function isOwnTable(name: string): boolean {
  return tableNames.has(name.toLowerCase());
}

function alienFailure(file: SqliteFile, what: string): AppError {
  return contentFailure(
    file.path,
    `${what}, which no recording of Queuescope has`,
    'Do not trust the file; ask whoever made it for the original.',
  );
}
