import { readFileSync, writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { AppError } from '../../base/errors.ts';

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

const words: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'there is no permission',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
};

function failure(verb: string, path: string, error: unknown): AppError {
  const code = codeOf(error);
  return new AppError('file-failed', `${path} cannot be ${verb}: ${words[code] ?? code}`, {
    details: { path, code },
    cause: error,
  });
}

/** @throws AppError `file-failed` */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw failure('read', path, error);
  }
}

/** The bytes of a file; "-" is standard input, to its end. @throws AppError `file-failed` */
export async function readBytes(path: string): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(process.stdin) : readFileSync(path);
  } catch (error) {
    throw failure('read', path === '-' ? 'Standard input' : path, error);
  }
}

/** @throws AppError `file-failed` */
export function writeTextFile(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw failure('written', path, error);
  }
}
