import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { formatDuration } from '../../../src/base/units.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import { createReport } from '../../../src/report/create-report.ts';
import { createReportModel } from '../../../src/report/report-model.ts';
import { hostileText, recordHostileSession } from '../../harness/hostile-session.ts';
import {
  recordSyntheticSession,
  type SyntheticOptions,
  syntheticSession,
} from '../../harness/synthetic-session.ts';
import { SessionStore } from '../../../src/recording/session-store.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

function openRecorded(options: SyntheticOptions): RecordingReader {
  const path = join(scratchFolder(), 'a.qscope');
  recordSyntheticSession(path, options);
  return open(path);
}

function open(path: string): RecordingReader {
  const reader = RecordingReader.open(path);
  onTestFinished(() => reader.close());
  return reader;
}

describe('the HTML report', () => {
  const created = { createdAt: '2025-11-06T13:40:00Z' };

  test('of an observed device speaks of nobody’s load and address but the system’s', () => {
    const reader = openRecorded({ device: { mode: 'observe', kernelDriver: 'cdc_ncm' } });
    const { text } = createReport(reader, 'html', created);
    expect(text).toContain('other programs’ load');
    expect(text).toContain('as the system has set it');
    expect(text).not.toMatch(/full load|<bdi>by DHCP/);
  });

  test('needs nothing but itself', () => {
    const { text, mediaType, fileName } = createReport(openRecorded({}), 'html', created);
    expect(fileName).toBe('a.html');
    expect(mediaType).toBe('text/html; charset=utf-8');
    expect(text).toMatch(/^<!doctype html>/);
    expect(text).not.toMatch(/<(?:script|link|img|iframe|object|embed|form|base)\b/i);
    expect(text).not.toMatch(/\b(?:src|href|srcset|action|style|on[a-z]+)\s*=/i);
    expect(text).not.toMatch(/https?:|url\((?!["']?#)|@import/i);
  });

  test('allows its own style and nothing else', () => {
    const { text } = createReport(openRecorded({}), 'html', created);
    const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(text).toContain(
      `content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`
        .replaceAll("'", '&#39;')
        .replace('content=&#39;', 'content="'),
    );
  });

  test('has p50, p95 and p99 of every phase', () => {
    const reader = openRecorded({});
    const { text } = createReport(reader, 'html', created);
    const { phases } = createReportModel(reader);
    expect(phases).toHaveLength(5);
    for (const { name, statistics } of phases) {
      const row = text.slice(text.indexOf(`scope="row">${name}`)).split('</tr>')[0] ?? '';
      for (const us of [statistics.rttUs.p50, statistics.rttUs.p95, statistics.rttUs.p99]) {
        expect(row, name).toContain(`>${formatDuration(us)}</td>`);
      }
    }
  });

  test('of an hour at 20 Hz stays far below 1 MB', () => {
    const phases = Array.from({ length: 12 }, (_value, index) => ({
      seconds: 300,
      bql: index % 2 === 1,
      load: true,
    }));
    const { text } = createReport(openRecorded({ phases }), 'html', created);
    expect(text.length).toBeGreaterThan(50_000);
    expect(text.length).toBeLessThan(400_000);
  }, 30_000);

  test('is the same for the same recording', () => {
    const reader = openRecorded({});
    expect(createReport(reader, 'html', created).text).toBe(createReport(reader, 'html', created).text);
  });

  test.each(['html', 'json', 'csv'])('of an empty recording is made as %s', (format) => {
    const path = join(scratchFolder(), 'a.qscope');
    SessionStore.create(path, syntheticSession({ phases: [] }).header).close({
      state: 'closed',
      dropped: { samples: 0, probes: 0, entries: 0 },
    });
    const { text } = createReport(open(path), format, created);
    expect(text).not.toMatch(/NaN|Infinity|undefined/);
    if (format === 'html') expect(text).toContain('Nothing was measured.');
  });

  test('of a few rows has no broken number in it', () => {
    for (const seconds of [0.05, 0.1, 0.5, 1]) {
      const reader = openRecorded({ phases: [{ seconds, bql: true, load: true }] });
      expect(createReport(reader, 'html', created).text).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test('shows hostile texts as text', () => {
    const path = join(scratchFolder(), 'a.qscope');
    recordHostileSession(path);
    const { text } = createReport(open(path), 'html', { ...created, title: hostileText });
    expect(text).not.toContain('<script');
    expect(text).not.toContain('<img');
    expect(text).not.toContain('\u202e');
    expect(text.match(/<\/style>/g)).toHaveLength(1);
    expect(text).toContain('&lt;script&gt;');
  });
});
