import { AppError, asAppError, errorTable } from '../../base/errors.ts';

/** Where a command's results and messages go. */
export interface Output {
  /** A line of the result, on standard output. */
  line(text: string): void;
  /** One JSON document, or one line of a stream of them, on standard output. */
  json(value: unknown): void;
  /** A message to the person, on standard error. */
  note(text: string): void;
}

const decimals = 1000;

/** Results carry microseconds and bits per second: more than three decimals of them are noise. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value)
    ? Math.round(value * decimals) / decimals
    : value;
}

export function createOutput(streams: {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}): Output {
  return {
    line: (text) => void streams.stdout.write(`${text}\n`),
    json: (value) => void streams.stdout.write(`${JSON.stringify(value, rounded)}\n`),
    note: (text) => void streams.stderr.write(`${text}\n`),
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
  return new AppError('usage', message, { remedy: 'See: queuescope help' });
}
