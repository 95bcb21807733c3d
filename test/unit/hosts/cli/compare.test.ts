import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { comparisonLines } from '../../../../src/hosts/cli/compare.ts';
import { RecordingReader } from '../../../../src/recording/recording-reader.ts';
import { compareRecordings } from '../../../../src/report/compare-recordings.ts';
import { createReportModel, type ReportModel } from '../../../../src/report/report-model.ts';
import { recordHostileSession } from '../../../harness/hostile-session.ts';
import { recordSyntheticSession } from '../../../harness/synthetic-session.ts';
import { scratchFolder } from '../../recording/scratch-folder.ts';

function model(record: (path: string) => unknown): ReportModel {
  const path = join(scratchFolder(), 'run.qscope');
  record(path);
  const reader = RecordingReader.open(path);
  try {
    return createReportModel(reader);
  } finally {
    reader.close();
  }
}

function lines(): readonly string[] {
  const before = model((path) => recordSyntheticSession(path));
  const after = model((path) => recordSyntheticSession(path, { seed: 2, device: { speed: 'high' } }));
  return comparisonLines(compareRecordings(before, after));
}

describe('a comparison for people', () => {
  test('says what was compared, arm by arm, and what not to make of it', () => {
    const shown = lines();
    expect(shown[0]).toBe('A  run.qscope: Quectel RM520N-GL (2c7c:0801), cdc_ncm, super; 60 s from');
    for (const title of ['IDLE', 'UNDER LOAD, BQL OFF', 'UNDER LOAD, BQL ON']) {
      expect(shown.filter((line) => line.startsWith(`${title} `))).toHaveLength(1);
    }
    expect(shown.join('\n')).toMatch(/^Round trip p50 +3\d\d ms +3\d\d ms +[+−]\S+ ms +[01]\.\d+$/m);
    expect(shown.join('\n')).toMatch(/^Errors a minute +0 +0 +0 +–$/m);
    expect(shown).toContain('  - USB speed: A SuperSpeed (5 Gbit/s); B high speed (480 Mbit/s)');
    expect(shown.join(' ').replaceAll(/\s+/g, ' ')).toMatch(/none of them is called significant/);
  });

  test('fits 100 columns', () => {
    for (const line of lines()) expect(line.length).toBeLessThanOrEqual(100);
  });

  test('a text from a file cannot pass for a line of ours', () => {
    const hostile = model((path) => recordHostileSession(path));
    const forged = model((path) => recordSyntheticSession(path, { device: { name: 'x\nIDLE  forged' } }));
    const shown = comparisonLines(compareRecordings(hostile, forged));
    expect(shown.filter((line) => line.includes('forged')).length).toBeGreaterThan(0);
    for (const line of shown) expect(line).not.toMatch(/^IDLE +forged/);
  });
});
