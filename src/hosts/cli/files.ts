import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { AppError } from '../../base/errors.ts';

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

const noPermission = ['there is no permission', 'Choose a place that you may write to.'] as const;
const explanations: Readonly<Record<string, readonly [words: string, remedy: string]>> = {
  ENOENT: ['there is no such file or folder', 'Check the path.'],
  ENOTDIR: ['a part of the path is a file, not a folder', 'Check the path.'],
  EISDIR: ['it is a folder', 'Name a file in it.'],
  ENAMETOOLONG: ['the name is too long', 'Choose a shorter one.'],
  EACCES: noPermission,
  EPERM: noPermission,
  EROFS: ['the disk is write-protected', 'Choose a place on another one.'],
  ENOSPC: ['the disk is full', 'Free space on it, or choose another one.'],
  EDQUOT: ['the disk space that you may use is full', 'Free space, or choose another disk.'],
};

/** A failure of a file, or of what stands for one, as a person is told of it. */
export function describeFileFailure(verb: 'read' | 'written', path: string, error: unknown): AppError {
  const code = codeOf(error);
  const [words, remedy] = explanations[code] ?? [code, undefined];
  const name = path === '' ? 'a file without a name' : path;
  return new AppError('file-failed', `${name} cannot be ${verb}: ${words}`, {
    details: { path, code },
    ...(remedy === undefined ? {} : { remedy }),
    cause: error,
  });
}

/** Some editors put it in front of what they save as UTF-8; it belongs to no format that is read here. */
const byteOrderMark = '\ufeff';

/** @throws AppError `file-failed` */
export function readTextFile(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    return text.startsWith(byteOrderMark) ? text.slice(1) : text;
  } catch (error) {
    throw describeFileFailure('read', path, error);
  }
}

/** The bytes of a file; "-" is standard input, to its end. @throws AppError `file-failed` */
export async function readBytes(path: string): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(process.stdin) : readFileSync(path);
  } catch (error) {
    throw describeFileFailure('read', path === '-' ? 'Standard input' : path, error);
  }
}

/**
 * Writes a whole file or, if that fails, nothing: what was there before stays.
 * @throws AppError `file-failed`
 */
export function writeTextFile(path: string, text: string): void {
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    if (existing !== undefined && !existing.isFile()) {
      // A device or a pipe, or a folder, which fails with the right words.
      writeFileSync(path, text);
      return;
    }
    const target = existing === undefined ? path : realpathSync(path);
    // An empty name would become a file of its own.
    const partial = path === '' ? '' : `${target}.partial`;
    try {
      writeFileSync(partial, text);
      renameSync(partial, target);
    } catch (error) {
      if (partial !== '') rmSync(partial, { force: true });
      throw error;
    }
  } catch (error) {
    throw describeFileFailure('written', path, error);
  }
}

/** Whether both are there and are one file. */
export function isSameFile(path: string, other: string): boolean {
  const [a, b] = [path, other].map((name) => statSync(name, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
