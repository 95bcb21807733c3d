import type { RecordingReader } from '../recording/recording-reader.ts';
import { createReport, type Report, type ReportFormat, reportFormats } from '../report/create-report.ts';
import type { ReportOptions } from '../report/report-model.ts';
import { printPdf, type PrintOptions } from './print-pdf.ts';

/** The formats of reports, and the one that takes another program: the HTML report on paper's pages. */
export type HostReportFormat = ReportFormat | 'pdf';
export const hostReportFormats: readonly HostReportFormat[] = [...reportFormats, 'pdf'];

/**
 * Makes a report of a recording; it is read before this answers for the first time.
 * @throws AppError as {@link createReport} and {@link printPdf}
 */
export async function makeReport(
  reader: RecordingReader,
  format: HostReportFormat,
  options: ReportOptions,
  printing: PrintOptions = {},
): Promise<Report> {
  if (format !== 'pdf') return createReport(reader, format, options);
  const { fileName, text } = createReport(reader, 'html', options);
  const bytes = await printPdf(text, printing);
  return {
    fileName: fileName.replace(/\.html$/, '.pdf'),
    mediaType: 'application/pdf',
    text: '',
    bytes,
    companions: [],
  };
}
