import {
  closeSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { AppError } from '../../base/errors.ts';
import { formatBytes, formatCount } from '../../base/units.ts';

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

/** No scenario and no listing is nearly as long; what has no end (/dev/zero) must not fill the memory. */
const largestFileBytes = 64_000_000;
const longestLineCharacters = 1_000_000;
const chunkBytes = 65_536;

/** A file in pieces; each is good until the next one. @throws AppError `file-failed` */
function* chunksOf(path: string): Generator<Uint8Array> {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const chunk = new Uint8Array(chunkBytes);
    for (let length; (length = readSync(file, chunk)) > 0;) yield chunk.subarray(0, length);
  } catch (error) {
    throw error instanceof AppError ? error : describeFileFailure('read', path, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Puts pieces together, as long as they are not too many. */
class BoundedBytes {
  readonly #name: string;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** @throws AppError `bad-input` once there are more than {@link largestFileBytes} */
  add(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes > largestFileBytes) {
      throw new AppError('bad-input', `${this.#name} is longer than ${formatBytes(largestFileBytes)}`, {
        remedy: 'Check that it is the right one.',
      });
    }
    this.#chunks.push(chunk.slice());
  }

  whole(): Uint8Array {
    return Buffer.concat(this.#chunks);
  }
}

/** @throws AppError `file-failed`; `bad-input` if it is longer than any that is meant */
export function readTextFile(path: string): string {
  const bytes = new BoundedBytes(path);
  for (const chunk of chunksOf(path)) bytes.add(chunk);
  const text = Buffer.from(bytes.whole()).toString('utf8');
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

/**
 * The bytes of a file; "-" is standard input, to its end.
 * @throws AppError `file-failed`; `bad-input` if there are more than any that are meant
 */
export async function readBytes(path: string): Promise<Uint8Array> {
  const name = path === '-' ? 'Standard input' : path;
  const bytes = new BoundedBytes(name);
  if (path !== '-') {
    for (const chunk of chunksOf(path)) bytes.add(chunk);
    return bytes.whole();
  }
  try {
    for await (const chunk of process.stdin) bytes.add(chunk as Uint8Array);
  } catch (error) {
    throw error instanceof AppError ? error : describeFileFailure('read', name, error);
  }
  return bytes.whole();
}

/**
 * The lines of a text, one after the other and without their ends, however long the whole is.
 * @throws AppError `file-failed`; `bad-input` for a line that is longer than any that is meant
 */
export function* textLines(path: string): Generator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  let line = 1;
  for (const chunk of chunksOf(path)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    line += lines.length;
    if (rest.length > longestLineCharacters) {
      throw new AppError(
        'bad-input',
        `${path}: line ${line} is longer than ${formatCount(longestLineCharacters)} characters`,
        { details: { file: path, line }, remedy: 'Check that it is the right file.' },
      );
    }
    yield* lines;
  }
  yield rest + decoder.decode();
}

/**
 * Writes a whole file or, if that fails, nothing: what was there before stays.
 * @throws AppError `file-failed`
 */
export function writeFile(path: string, content: string | Uint8Array): void {
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    if (existing !== undefined && !existing.isFile()) {
      // A device or a pipe, or a folder, which fails with the right words.
      writeFileSync(path, content);
      return;
    }
    const target = existing === undefined ? path : realpathSync(path);
    // An empty name would become a file of its own.
    const partial = path === '' ? '' : `${target}.partial`;
    try {
      writeFileSync(partial, content);
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
