import { AppError } from '../base/errors.ts';
import type { RecordingReader } from '../recording/recording-reader.ts';
import { exportCsv } from './export-csv.ts';
import { exportFlent, flentExtension } from './export-flent.ts';
import { exportJson } from './export-json.ts';
import { renderHtml } from './render-html.ts';
import { createReportModel, type ReportOptions } from './report-model.ts';

/** A file that is ready to be written or sent. */
export interface ReportFile {
  readonly fileName: string;
  readonly mediaType: string;
  /** What is in it; empty if that is not text. */
  readonly text: string;
  /** What is in it, if that is not text. */
  readonly bytes?: Uint8Array;
}

/** A report; some formats need more than one file. */
export interface Report extends ReportFile {
  /** Files that belong beside it, with names of their own: `companionPath` says where they go. */
  readonly companions: readonly Companion[];
}

export interface Companion extends ReportFile {
  /** What stands between the report's name and its extension: `-probes`. */
  readonly suffix: string;
  /** Without the first dot: `csv`. */
  readonly extension: string;
}

interface Format {
  readonly title: string;
  readonly extension: string;
  readonly mediaType: string;
  /** Whoever reads it goes by the extension, so that a file must have it. */
  readonly extensionMatters?: boolean;
  /** @param stem the name of the file that it gets, without the extension */
  render(reader: RecordingReader, options: ReportOptions, stem: string): Rendered;
}

interface Content {
  readonly text: string;
  readonly bytes?: Uint8Array;
}

interface Rendered extends Content {
  readonly companions?: readonly (Content & { readonly suffix: string })[];
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
  flent: {
    title: 'Data file for Flent, and one for each arm of an experiment',
    extension: flentExtension,
    mediaType: 'application/gzip',
    extensionMatters: true,
    render: (reader, options, stem) => {
      const files = exportFlent(createReportModel(reader, options), reader, stem);
      const [whole, ...arms] = files.map((file) => ({ ...file, text: '' }));
      return { text: '', ...whole, companions: arms };
    },
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
  const stem = (reader.path.split(/[\\/]/).at(-1) ?? 'report').replace(/\.qscope$/, '');
  const { companions = [], ...content } = render(reader, options, stem);
  return {
    ...contentOf(content),
    fileName: `${stem}.${extension}`,
    mediaType,
    companions: companions.map(({ suffix, ...companion }) => ({
      ...contentOf(companion),
      suffix,
      extension,
      fileName: `${stem}${suffix}.${extension}`,
      mediaType,
    })),
  };
}

function contentOf({ text, bytes }: Content): Content {
  return { text, ...(bytes !== undefined && { bytes }) };
}

/** Where a companion goes if the report goes to `path`: `run.csv` and `-probes` give `run-probes.csv`. */
export function companionPath(path: string, { suffix, extension }: Companion): string {
  const own = `.${extension}`;
  const dot = path.endsWith(own)
    ? path.length - own.length
    : (/\.[^./\\]+$/.exec(path)?.index ?? path.length);
  return path.slice(0, dot) + suffix + path.slice(dot);
}

/** What the name of a file in this format has to end in, such as `.flent.gz`; undefined: as one likes. */
export function requiredExtension(format: string): string | undefined {
  const known = reportFormats.find((name) => name === format);
  if (known === undefined) return undefined;
  const { extension, extensionMatters }: Format = formats[known];
  return extensionMatters === true ? `.${extension}` : undefined;
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
