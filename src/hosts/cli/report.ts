import { exitCodes } from '../../base/errors.ts';
import { RecordingReader } from '../../recording/recording-reader.ts';
import { companionPath, createReport, type ReportFormat } from '../../report/create-report.ts';
import type { Command } from './command.ts';
import { writeTextFile } from './files.ts';

export interface ReportCommandOptions {
  readonly file: string;
  readonly format: ReportFormat;
  /** A path, or "-" for standard output; what needs a second file leaves that out there. */
  readonly out: string;
  readonly showIds: boolean;
}

/** `queuescope report`: a recording as a report that can be handed on. */
export const report: Command<ReportCommandOptions> = async ({ output }, options) => {
  const reader = RecordingReader.open(options.file);
  try {
    const { text, companions } = createReport(reader, options.format, {
      showIdentifiers: options.showIds,
      createdAt: new Date().toISOString(),
    });
    if (options.out === '-') {
      output.line(text);
      return exitCodes.ok;
    }
    writeTextFile(options.out, text);
    output.note(`written to ${options.out}`);
    for (const companion of companions) {
      const path = companionPath(options.out, companion);
      writeTextFile(path, companion.text);
      output.note(`written to ${path}`);
    }
  } finally {
    reader.close();
  }
  return exitCodes.ok;
};
