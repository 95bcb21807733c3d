import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { probeColumns, sampleColumns } from '../../../src/contract/telemetry.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { companionPath, createReport, reportFormats } from '../../../src/report/create-report.ts';
import { recordSyntheticSession, type SyntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

function recorded(): { reader: RecordingReader; made: SyntheticSession } {
  const path = join(scratchFolder(), 'run 1.qscope');
  const made = recordSyntheticSession(path, { gap: { fromUs: 26e6, toUs: 31e6 } });
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return { reader, made };
}

/** A table of RFC 4180, for fields that need no quotes. */
function parseCsv(text: string): { header: string[]; values: Float64Array } {
  expect(text.endsWith('\r\n')).toBe(true);
  const [header, ...lines] = text.slice(0, -2).split('\r\n');
  const values = lines.flatMap((line) =>
    line.split(',').map((field) => (field === '' ? Number.NaN : Number(field))),
  );
  return { header: header?.split(',') ?? [], values: Float64Array.from(values) };
}

describe('CSV', () => {
  test('gives back every number of both tables, exactly', () => {
    const { reader, made } = recorded();
    const report = createReport(reader, 'csv');
    expect(report.fileName).toBe('run 1.csv');
    const samples = parseCsv(report.text);
    expect(samples.header).toEqual(sampleColumns);
    expect(samples.values).toEqual(made.samples);
    expect(report.companions.map(({ fileName, suffix }) => [fileName, suffix])).toEqual([
      ['run 1-probes.csv', '-probes'],
    ]);
    const probes = parseCsv(report.companions[0]?.text ?? '');
    expect(probes.header).toEqual(probeColumns);
    expect(probes.values).toEqual(made.probes);
  });

  test.each([
    ['run.csv', 'run-probes.csv'],
    ['/a.b/run', '/a.b/run-probes'],
    ['out/x.y.csv', 'out/x.y-probes.csv'],
    ['C:\\runs\\x.csv', 'C:\\runs\\x-probes.csv'],
  ])('to %s puts the probes into %s', (path, expected) => {
    const companion = { suffix: '-probes', extension: 'csv', fileName: '', mediaType: '', text: '' };
    expect(companionPath(path, companion)).toBe(expected);
  });

  test('an extension of two parts stays whole', () => {
    const companion = { suffix: '-BQL_off', extension: 'flent.gz', fileName: '', mediaType: '', text: '' };
    expect(companionPath('a.b/run.1.flent.gz', companion)).toBe('a.b/run.1-BQL_off.flent.gz');
  });
});

describe('JSON', () => {
  test('has meta data, statistics and all telemetry, with null for what is missing', () => {
    const { reader, made } = recorded();
    const document = JSON.parse(createReport(reader, 'json', { createdAt: '2025-11-06T13:40:00Z' }).text) as {
      phases: { name: string; rttUs: { p50: number }; limitBytes: { p50: number | null } }[];
      samples: { rowCount: number; columns: Record<string, (number | null)[]> };
      probes: { rowCount: number; columns: Record<string, (number | null)[]> };
    };
    expect(document).toMatchObject({
      format: 'queuescope-report',
      version: 1,
      meta: {
        fileName: 'run 1.qscope',
        createdAt: '2025-11-06T13:40:00Z',
        startedAt: '2025-11-06T14:30:05.000+01:00',
        state: 'closed',
        fromUs: 0,
        toUs: 60e6,
        identifiersMasked: true,
      },
      device: { id: 'usb:2-1.4', vendorId: 0x2c7c },
      phaseSource: 'recorded',
      arms: {
        bqlOff: { phases: 2, inflightBytes: { p50: 454_200 } },
        bqlOn: { phases: 2 },
        idle: { bql: 'on' },
      },
      validity: expect.arrayContaining([
        expect.objectContaining({ id: 'gaps', severity: 'warning' }),
      ]) as unknown,
    });
    expect(document.phases.map(({ name }) => name)).toHaveLength(5);
    expect(document.phases[1]?.limitBytes.p50).toBeNull();
    for (const [table, columns, values] of [
      [document.samples, sampleColumns, made.samples],
      [document.probes, probeColumns, made.probes],
    ] as const) {
      expect(table.rowCount).toBe(values.length / columns.length);
      expect(Object.keys(table.columns)).toEqual(columns);
      for (const [index, column] of columns.entries()) {
        const expected = Array.from(values.filter((_value, position) => position % columns.length === index));
        expect(table.columns[column], column).toEqual(
          expected.map((value) => (Number.isNaN(value) ? null : value)),
        );
      }
    }
  });
});

test('a format that does not exist is a fault of the command, and names those that do', () => {
  const { reader } = recorded();
  expect(() => createReport(reader, 'pdf')).toThrow('There is no report format pdf');
  expect(reportFormats).toEqual(['html', 'csv', 'json', 'flent']);
});
