import { exitCodes } from '../../base/errors.ts';
import { RecordingReader } from '../../recording/recording-reader.ts';
import { recordingExtension } from '../../recording/session-schema.ts';
import { companionPath, createReport, type ReportFormat } from '../../report/create-report.ts';
import type { Command } from './command.ts';
import { isSameFile, writeTextFile } from './files.ts';
import { usageError } from './output.ts';

export interface ReportCommandOptions {
  readonly file: string;
  readonly format: ReportFormat;
  /** A path, or "-" for standard output; what needs a second file leaves that out there. */
  readonly out: string;
  readonly showIds: boolean;
}

/** `queuescope report`: a recording as a report that can be handed on. */
export const report: Command<ReportCommandOptions> = async ({ output }, options) => {
  const { file, out } = options;
  if (out.endsWith(recordingExtension) || isSameFile(file, out)) {
    throw usageError(`--out ${out}: a report must not take the place of a recording`);
  }
  const reader = RecordingReader.open(file);
  try {
    const { text, companions } = createReport(reader, options.format, {
      showIdentifiers: options.showIds,
      createdAt: new Date().toISOString(),
    });
    if (out === '-') {
      output.document(text);
      return exitCodes.ok;
    }
    writeTextFile(out, text);
    output.note(`written to ${out}`);
    for (const companion of companions) {
      const path = companionPath(out, companion);
      writeTextFile(path, companion.text);
      output.note(`written to ${path}`);
    }
  } finally {
    reader.close();
  }
  return exitCodes.ok;
};
