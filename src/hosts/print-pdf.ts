import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AppError } from '../base/errors.ts';
import { findChromium } from './find-chromium.ts';

export interface PrintOptions {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Ends it before its time. */
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

/** A cold start on a slow disk takes ten seconds. */
const usualDeadlineMs = 60_000;

const otherwise = 'Or make the HTML report, and have a browser print it.';

/** A page that needs nothing but itself: whatever Chromium would do beyond printing it is turned off. */
const quiet = [
  '--headless',
  '--disable-gpu',
  '--disable-extensions',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
  '--no-default-browser-check',
  '--host-resolver-rules=MAP * ~NOTFOUND',
  '--no-pdf-header-footer',
];

/**
 * Has a Chromium of this machine print an HTML page, and answers with the PDF.
 * @throws AppError `file-failed` if there is none or it makes no PDF, `cancelled` if it was ended before
 */
export async function printPdf(html: string, options: PrintOptions = {}): Promise<Uint8Array> {
  const { environment = process.env, signal, deadlineMs = usualDeadlineMs } = options;
  const program = findChromium(environment, process.platform);
  if (program === undefined) throw noChromium(environment['CHROMIUM_PATH']);
  const folder = mkdtempSync(join(tmpdir(), 'queuescope-pdf-'));
  try {
    const page = join(folder, 'report.html');
    const pdf = join(folder, 'report.pdf');
    writeFileSync(page, html);
    const args = [
      ...quiet,
      // It does not start as root otherwise; what it gets to see is our own page, which has no scripts.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      `--user-data-dir=${join(folder, 'profile')}`,
      `--print-to-pdf=${pdf}`,
      pathToFileURL(page).href,
    ];
    const failure = await run(program, args, { signal, deadlineMs });
    if (signal?.aborted === true) throw new AppError('cancelled', 'The PDF was not made');
    const bytes = wholePdf(pdf);
    if (bytes !== undefined) return bytes;
    throw new AppError('file-failed', `${program} made no PDF: ${failure ?? 'it wrote none'}`, {
      details: { program },
      remedy: `Try another one: CHROMIUM_PATH names it. ${otherwise}`,
    });
  } finally {
    // What it leaves behind may still be written to for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

function noChromium(named: string | undefined): AppError {
  const message =
    named === undefined || named === ''
      ? 'A PDF cannot be made: there is no Chromium, Chrome or Edge on this machine'
      : `A PDF cannot be made: CHROMIUM_PATH names no program (${named})`;
  return new AppError('file-failed', message, {
    remedy: `Install one, or name one with CHROMIUM_PATH. ${otherwise}`,
  });
}

/** Why it failed, in a few words; undefined if it did not. */
function run(
  program: string,
  args: readonly string[],
  { signal, deadlineMs }: { readonly signal: AbortSignal | undefined; readonly deadlineMs: number },
): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      program,
      args,
      { signal, timeout: deadlineMs, killSignal: 'SIGKILL', windowsHide: true, maxBuffer: 1 << 24 },
      (error) => {
        if (error === null) resolve(undefined);
        else if (error.killed === true) resolve(`it took longer than ${deadlineMs / 1000} s`);
        else resolve(typeof error.code === 'number' ? `it ended with code ${error.code}` : error.message);
      },
    );
  });
}

/** Undefined if there is none, or only a part of one. */
function wholePdf(path: string): Uint8Array | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return undefined;
  }
  const isWhole =
    bytes.subarray(0, 5).toString('latin1') === '%PDF-' && bytes.subarray(-32).includes('%%EOF');
  return isWhole ? bytes : undefined;
}
