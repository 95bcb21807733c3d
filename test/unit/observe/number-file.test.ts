import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { NumberFile } from '../../../src/observe/number-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'queuescope-number-'));
const path = join(folder, 'inflight');
const scratch = NumberFile.createScratch();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function open(content: string): NumberFile {
  writeFileSync(path, content);
  const file = NumberFile.open(path, scratch);
  if (file === undefined) throw new Error('the file is there');
  return file;
}

test('each reading is what the file holds then', () => {
  const file = open('0\n');
  const values = ['454200\n', '9\n', '9007199254740991\n', '0\n'].map((content) => {
    writeFileSync(path, content);
    return file.read();
  });
  expect(values).toEqual([454_200, 9, Number.MAX_SAFE_INTEGER, 0]);
  file.close();
});

test.each(['', '\n', 'unlimited\n', '-1\n'])('%j is no number', (content) => {
  const file = open(content);
  expect(file.read()).toBeNaN();
  expect(file.isGone).toBe(false);
  file.close();
});

test('files share their room for reading without sharing what they read', () => {
  const first = open('123456\n');
  writeFileSync(join(folder, 'limit'), '7\n');
  const second = NumberFile.open(join(folder, 'limit'), scratch);
  expect([first.read(), second?.read(), first.read()]).toEqual([123_456, 7, 123_456]);
  first.close();
  second?.close();
});

test('there is none to open', () => {
  expect(NumberFile.open(join(folder, 'nothing'), scratch)).toBeUndefined();
});

test('a closed file reads nothing, and is closed once', () => {
  const file = open('1\n');
  file.close();
  file.close();
  expect(file.read()).toBeNaN();
});
