import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import {
  isSameFile,
  readBytes,
  readTextFile,
  textLines,
  writeFile,
} from '../../../../src/hosts/cli/files.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'queuescope-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function failureOf(action: () => unknown): AppError {
  try {
    action();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

test('writes a file, over one that is there and through a link', () => {
  const path = join(folder, 'a.html');
  writeFile(path, 'one');
  symlinkSync(path, join(folder, 'link'));
  writeFile(join(folder, 'link'), 'two');
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(readdirSync(folder)).toEqual(['a.html', 'link']);
});

test('what was there stays if the new text cannot be written', () => {
  const path = join(folder, 'a.html');
  writeFileSync(path, 'old');
  // Stands in for a full disk: the text cannot be put beside the old one.
  mkdirSync(`${path}.partial`);
  expect(failureOf(() => writeFile(path, 'new')).kind).toBe('file-failed');
  expect(readFileSync(path, 'utf8')).toBe('old');
});

test.each([
  ['a folder', '.', /it is a folder/],
  ['nothing', '', /a file without a name cannot be written/],
  ['a folder that is not there', 'no/a.html', /no such file or folder/],
  ['a file in a file', 'file/a.html', /a part of the path is a file/],
  ['a name that is too long', 'n'.repeat(300), /the name is too long/],
])('%s: words and a remedy', (_name, relative, words) => {
  writeFileSync(join(folder, 'file'), '');
  const failure = failureOf(() => writeFile(relative === '' ? '' : join(folder, relative), 'text'));
  expect(failure.message).toMatch(words);
  expect(failure.remedy).toBeDefined();
  expect(readdirSync(folder)).toEqual(['file']);
});

test('reading what is not there', () => {
  expect(failureOf(() => readTextFile(join(folder, 'none'))).message).toMatch(/no such file/);
});

test('a byte order mark is no part of the text', () => {
  const path = join(folder, 'a.json');
  writeFileSync(path, '\ufeff{}');
  expect(readTextFile(path)).toBe('{}');
});

test('one file by two names', () => {
  const path = join(folder, 'a');
  writeFileSync(path, '');
  writeFileSync(join(folder, 'b'), '');
  symlinkSync(path, join(folder, 'link'));
  expect(isSameFile(path, join(folder, 'link'))).toBe(true);
  expect(isSameFile(path, join(folder, 'b'))).toBe(false);
  expect(isSameFile(path, join(folder, 'none'))).toBe(false);
});

test.each([
  ['', ['']],
  ['a\n\nb', ['a', '', 'b']],
  ['a\n', ['a', '']],
  ['\ufeffa\nä', ['a', 'ä']],
])('lines of %j', (text, expected) => {
  const path = join(folder, 'lines');
  writeFileSync(path, text);
  expect([...textLines(path)]).toEqual(expected);
});

test('lines are whole wherever the file is cut into pieces', () => {
  const path = join(folder, 'lines');
  // Letters of two bytes, so that some lie on a border.
  const lines = Array.from({ length: 3000 }, (_line, index) => `${index} ${'ä'.repeat(index % 97)}`);
  writeFileSync(path, lines.join('\n'));
  expect([...textLines(path)]).toEqual(lines);
});

test.skipIf(process.platform === 'win32')('what has no end is given up in time', async () => {
  const failure = failureOf(() => [...textLines('/dev/zero')]);
  expect(failure.kind).toBe('bad-input');
  expect(failure.message).toMatch(/^\/dev\/zero: line 1 is longer than 1,000,000 characters$/);
  expect(failureOf(() => readTextFile('/dev/zero')).message).toBe('/dev/zero is longer than 64.0 MB');
  await expect(readBytes('/dev/zero')).rejects.toMatchObject({ kind: 'bad-input' });
});

test.each([
  ['textLines', (path: string) => [...textLines(path)]],
  ['readTextFile', (path: string) => readTextFile(path)],
])('%s: a folder, and a file that is not there', (_name, read) => {
  expect(failureOf(() => read(folder)).message).toBe(`${folder} cannot be read: it is a folder`);
  expect(failureOf(() => read(join(folder, 'none'))).message).toMatch(/there is no such file or folder$/);
});
