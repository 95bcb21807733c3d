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
import { isSameFile, readTextFile, writeTextFile } from '../../../../src/hosts/cli/files.ts';

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
  writeTextFile(path, 'one');
  symlinkSync(path, join(folder, 'link'));
  writeTextFile(join(folder, 'link'), 'two');
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(readdirSync(folder)).toEqual(['a.html', 'link']);
});

test('what was there stays if the new text cannot be written', () => {
  const path = join(folder, 'a.html');
  writeFileSync(path, 'old');
  // Stands in for a full disk: the text cannot be put beside the old one.
  mkdirSync(`${path}.partial`);
  expect(failureOf(() => writeTextFile(path, 'new')).kind).toBe('file-failed');
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
  const failure = failureOf(() => writeTextFile(relative === '' ? '' : join(folder, relative), 'text'));
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
