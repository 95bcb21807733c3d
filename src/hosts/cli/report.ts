import { exitCodes } from '../../base/errors.ts';
import { RecordingReader } from '../../recording/recording-reader.ts';
import { recordingExtension } from '../../recording/session-schema.ts';
import { companionPath, requiredExtension } from '../../report/create-report.ts';
import { type HostReportFormat, makeReport } from '../make-report.ts';
import type { Command } from './command.ts';
import { isSameFile, writeFile } from './files.ts';
import { usageError } from './output.ts';

export interface ReportCommandOptions {
  readonly file: string;
  readonly format: HostReportFormat;
  /** A path, or "-" for standard output; what needs a second file leaves that out there. */
  readonly out: string;
  readonly showIds: boolean;
}

/** `queuescope report`: a recording as a report that can be handed on. */
export const report: Command<ReportCommandOptions> = async ({ output, interrupted }, options) => {
  const { file, out } = options;
  if (out.endsWith(recordingExtension) || isSameFile(file, out)) {
    throw usageError(`--out ${out}: a report must not take the place of a recording`);
  }
  const extension = requiredExtension(options.format);
  if (out !== '-' && extension !== undefined && !out.endsWith(extension)) {
    throw usageError(`--out ${out}: what reads it goes by its name, which has to end in ${extension}`);
  }
  const reader = RecordingReader.open(file);
  try {
    const { text, bytes, companions } = await makeReport(
      reader,
      options.format,
      { showIdentifiers: options.showIds, createdAt: new Date().toISOString() },
      { signal: interrupted },
    );
    if (out === '-') {
      if (bytes === undefined) output.document(text);
      else output.bytes(bytes);
      return exitCodes.ok;
    }
    writeFile(out, bytes ?? text);
    output.note(`written to ${out}`);
    for (const companion of companions) {
      const path = companionPath(out, companion);
      writeFile(path, companion.bytes ?? companion.text);
      output.note(`written to ${path}`);
    }
  } finally {
    reader.close();
  }
  return exitCodes.ok;
};
