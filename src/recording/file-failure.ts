import { basename, dirname } from 'node:path';
import { AppError } from '../base/errors.ts';

/** What was being done to the file, as the start of a sentence. */
export type FileAction = 'created' | 'opened' | 'read' | 'written' | 'closed' | 'recovered';

/**
 * Any failure of the file system or of SQLite as an {@link AppError} of kind `file-failed`, in words for a person and
 * with what to do about it. SQLite's extended codes (`SQLITE_IOERR_WRITE`) and Node's (`ENOSPC`) are both understood.
 */
export function fileFailure(action: FileAction, path: string, thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const code = codeOf(thrown);
  const [reason, remedy] = explain(action, code, path, thrown);
  return new AppError('file-failed', `${basename(path)} could not be ${action}: ${reason}`, {
    details: { path, code },
    remedy,
    cause: thrown,
  });
}

/** The failure of a file that can be read but not used, because of what is in it. */
export function contentFailure(path: string, reason: string, remedy: string): AppError {
  return new AppError('file-failed', `${basename(path)} cannot be used: ${reason}`, {
    details: { path, code: 'content' },
    remedy,
  });
}

/** SQLite's primary result codes, and the one extended code that matters here. */
const sqliteCodes: Readonly<Record<number, string>> = {
  3: 'SQLITE_PERM',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
  778: 'SQLITE_IOERR_WRITE',
};

/** The code of a Node or SQLite error; `unknown` without one. */
export function codeOf(thrown: unknown): string {
  if (thrown === null || typeof thrown !== 'object') return 'unknown';
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : 'unknown';
  const raw = 'rawCode' in thrown && typeof thrown.rawCode === 'number' ? thrown.rawCode : undefined;
  if (raw === undefined || code.startsWith('SQLITE_')) return code;
  // libsql does not know the names of all extended codes; their lowest byte is the primary one.
  return sqliteCodes[raw] ?? sqliteCodes[raw & 0xff] ?? code;
}

function explain(
  action: FileAction,
  code: string,
  path: string,
  thrown: unknown,
): readonly [reason: string, remedy: string] {
  const folder = dirname(path);
  switch (code) {
    case 'EEXIST':
      return ['there is a file of that name already', 'Choose another name, or move the old file away.'];
    case 'ENOENT':
      return [
        'there is no such file or folder',
        // What was to be read is named by its own path; what was to be made can only lack its folder.
        action === 'created' ? `Check that the folder ${folder} exists.` : `Check the path ${path}.`,
      ];
    case 'ENOTDIR':
    case 'EISDIR':
      return ['a folder stands where a file is needed, or the other way round', `Check the path ${path}.`];
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return ['permission was denied', `Choose a folder that you may write to; ${folder} is not one.`];
    case 'ENOSPC':
    case 'EDQUOT':
      return ['the disk is full', `Free space on the disk that holds ${folder}, then start a new recording.`];
    case 'ENAMETOOLONG':
      return ['its name is too long', 'Choose a shorter one.'];
    case 'EMFILE':
    case 'ENFILE':
      return ['too many files are open', 'Close other programs, then try again.'];
  }
  // SQLite's extended codes begin with the primary one.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_WRITE') {
    return ['the disk is full', `Free space on the disk that holds ${folder}, then start a new recording.`];
  }
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    return [
      'another program holds it locked',
      'Close the other program that has the file open, then try again.',
    ];
  }
  if (code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_PERM')) {
    return ['it is write-protected', `Choose a folder that you may write to; ${folder} is not one.`];
  }
  if (code.startsWith('SQLITE_CANTOPEN')) {
    return ['it cannot be opened', `Check that ${folder} exists and that you may read and write there.`];
  }
  if (code.startsWith('SQLITE_NOTADB') || code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_ERROR') {
    return ['it is damaged, or not a recording', 'Use another copy of the file if there is one.'];
  }
  if (code.startsWith('SQLITE_IOERR')) {
    return ['the disk answered with an error', `Check the disk that holds ${folder}.`];
  }
  return [
    thrown instanceof Error ? thrown.message : String(thrown),
    `Check ${path} and the disk that holds it.`,
  ];
}
