import { AppError } from '../base/errors.ts';
import type { RecordingReader } from '../recording/recording-reader.ts';
import { exportCsv } from './export-csv.ts';
import { exportJson } from './export-json.ts';
import { renderHtml } from './render-html.ts';
import { createReportModel, type ReportOptions } from './report-model.ts';

/** A file that is ready to be written or sent. */
export interface ReportFile {
  readonly fileName: string;
  readonly mediaType: string;
  readonly text: string;
}

/** A report; some formats need more than one file. */
export interface Report extends ReportFile {
  /** Files that belong beside it, with names of their own: `companionPath` says where they go. */
  readonly companions: readonly Companion[];
}

export interface Companion extends ReportFile {
  /** What stands between the report's name and its extension: `-probes`. */
  readonly suffix: string;
}

interface Format {
  readonly title: string;
  readonly extension: string;
  readonly mediaType: string;
  render(reader: RecordingReader, options: ReportOptions): Rendered;
}

interface Rendered {
  readonly text: string;
  readonly companions?: readonly { readonly suffix: string; readonly text: string }[];
}

/** Every format there is: a new one is a file with its rendering, and a line here. */
const formats = {
  html: {
    title: 'Report with charts, for people',
    extension: 'html',
    mediaType: 'text/html; charset=utf-8',
    render: (reader, options) => ({ text: renderHtml(createReportModel(reader, options)) }),
  },
  csv: {
    title: 'Samples, and probes in a second file, for spreadsheets',
    extension: 'csv',
    mediaType: 'text/csv; charset=utf-8; header=present',
    render: (reader) => ({
      text: exportCsv(reader, 'samples'),
      companions: [{ suffix: '-probes', text: exportCsv(reader, 'probes') }],
    }),
  },
  json: {
    title: 'Statistics and all telemetry, for programs',
    extension: 'json',
    mediaType: 'application/json',
    render: (reader, options) => ({ text: exportJson(createReportModel(reader, options), reader) }),
  },
} as const satisfies Record<string, Format>;

export type ReportFormat = keyof typeof formats;

export const reportFormats = Object.keys(formats) as readonly ReportFormat[];

/**
 * Makes a report of a recording.
 * @throws AppError `file-failed` if the recording cannot be read, `usage` for a format that does not exist
 */
export function createReport(reader: RecordingReader, format: string, options: ReportOptions = {}): Report {
  const { extension, mediaType, render } = formatOf(format);
  const { text, companions = [] } = render(reader, options);
  const stem = (reader.path.split(/[\\/]/).at(-1) ?? 'report').replace(/\.qscope$/, '');
  return {
    fileName: `${stem}.${extension}`,
    mediaType,
    text,
    companions: companions.map((companion) => ({
      ...companion,
      fileName: `${stem}${companion.suffix}.${extension}`,
      mediaType,
    })),
  };
}

/** Where a companion goes if the report goes to `path`: `run.csv` and `-probes` give `run-probes.csv`. */
export function companionPath(path: string, companion: Companion): string {
  const dot = /\.[^./\\]+$/.exec(path);
  return dot === null ? path + companion.suffix : path.slice(0, dot.index) + companion.suffix + dot[0];
}

function formatOf(name: string): Format {
  const format = reportFormats.find((known) => known === name);
  if (format === undefined) {
    throw new AppError('usage', `There is no report format ${name}`, {
      details: { format: name },
      remedy: `Choose one of ${reportFormats.join(', ')}.`,
    });
  }
  return formats[format];
}
