import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { replayTrace, ReplayError } from '../../../src/bql/replay.ts';

const folder = new URL('../../fixtures/kernel-traces/', import.meta.url);

describe('traces of a real kernel', () => {
  for (const file of readdirSync(folder)) {
    test(`${file}: every completion leaves the state that the kernel had`, () => {
      const lines = readFileSync(new URL(file, folder), 'utf8').split('\n');
      const expected = lines
        .filter((line) => line.startsWith('{"completed"'))
        .map((line) => JSON.parse(line) as unknown);
      expect(expected.length).toBeGreaterThan(100);
      expect([...replayTrace(lines)]).toEqual(expected);
    });
  }
});

describe('a trace that cannot be replayed', () => {
  const header = '{"hold_time":250,"limit_min":0,"limit_max":1879048192,"slack_start":0}';
  test.each([
    ['not JSON', ['{'], 1],
    ['no header', ['[]'], 1],
    ['header without hold time', ['{"limit_max":1}'], 1],
    ['completes more than is in flight', [header, '{"queued":10}', '{"completed":11,"now":1}'], 3],
    ['a negative amount', [header, '{"queued":-1}'], 2],
    ['an unknown event', [header, '', '{"dropped":1}'], 3],
  ])('%s: names the line', (_name, lines, line) => {
    expect(() => [...replayTrace(lines)]).toThrow(ReplayError);
    expect(() => [...replayTrace(lines)]).toThrow(`line ${line}:`);
  });
});
