import { AppError, asAppError, errorTable } from '../../base/errors.ts';
import { roundedNumber } from './row-line.ts';

/** Where a command's results and messages go. */
export interface Output {
  /** A line of the result for people, on standard output. */
  line(text: string): void;
  /** A whole document as it is, on standard output. */
  document(text: string): void;
  /** A file that is not text, on standard output. */
  bytes(bytes: Uint8Array): void;
  /** One JSON document, or one line of a stream of them, on standard output. */
  json(value: unknown): void;
  /** A message to the person, on standard error. */
  note(text: string): void;
}

function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? roundedNumber(value) : value;
}

/**
 * What a terminal takes for a command, and what turns the direction of writing: names come from devices, other machines
 * and files, and must not be able to write over what is true. Tabs and line ends stay.
 */
// oxlint-disable-next-line no-control-regex -- they are what is meant
const terminalControls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

function forTerminal(text: string): string {
  return text.replaceAll(terminalControls, '\ufffd');
}

export function createOutput(streams: {
  readonly stdout: { write(content: string | Uint8Array): unknown };
  readonly stderr: { write(text: string): unknown };
}): Output {
  return {
    line: (text) => void streams.stdout.write(`${forTerminal(text)}\n`),
    document: (text) => void streams.stdout.write(`${text}\n`),
    bytes: (bytes) => void streams.stdout.write(bytes),
    json: (value) => void streams.stdout.write(`${JSON.stringify(value, rounded)}\n`),
    note: (text) => void streams.stderr.write(`${forTerminal(text)}\n`),
  };
}

/** Tells a failure in words, with its remedy, and answers with the exit code that belongs to it. */
export function reportFailure(output: Output, thrown: unknown): number {
  const error = asAppError(thrown);
  const { title, exitCode } = errorTable[error.kind];
  output.note(`queuescope: ${title}: ${error.message}`);
  if (error.remedy !== undefined) output.note(error.remedy);
  if (error.kind === 'internal' && error.cause instanceof Error && error.cause.stack !== undefined) {
    output.note(error.cause.stack);
  }
  return exitCode;
}

/** Columns padded to the widest cell, two spaces between them; the last one is not padded. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  return rows
    .map((row) =>
      row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  '),
    )
    .join('\n');
}

/** A usage error that names the option. */
export function usageError(message: string): AppError {
  return new AppError('usage', message, { remedy: 'See: npx queuescope help' });
}
