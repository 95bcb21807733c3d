import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { findChromium } from '../../../src/hosts/find-chromium.ts';
import { printPdf, type PrintOptions } from '../../../src/hosts/print-pdf.ts';
import { scratchFolder } from '../recording/scratch-folder.ts';

/** A program of the given name that does what the shell script says; `$pdf` is where the PDF is wanted. */
function program(folder: string, name: string, script: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  const pdf = 'for argument; do case $argument in --print-to-pdf=*) pdf=${argument#*=};; esac; done';
  writeFileSync(path, `#!/bin/sh\n${pdf}\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe.skipIf(process.platform === 'win32')('a Chromium is looked for', () => {
  test('on PATH, the first of its names that is a program', () => {
    const folder = scratchFolder();
    const [first, second] = [join(folder, 'a'), join(folder, 'b')];
    const chrome = program(first, 'google-chrome', 'true');
    const chromium = program(second, 'chromium', 'true');
    mkdirSync(join(first, 'chromium'));
    expect(findChromium({ PATH: `${first}:${second}` }, 'linux')).toBe(chromium);
    expect(findChromium({ PATH: first }, 'linux')).toBe(chrome);
    expect(findChromium({ PATH: `:${folder}` }, 'linux')).toBeUndefined();
    expect(findChromium({}, 'linux')).toBeUndefined();
  });

  test('only where CHROMIUM_PATH says, if it does', () => {
    const folder = scratchFolder();
    const chromium = program(folder, 'chromium', 'true');
    const other = program(folder, 'mine', 'true');
    expect(findChromium({ PATH: folder, CHROMIUM_PATH: other }, 'linux')).toBe(other);
    expect(findChromium({ PATH: folder, CHROMIUM_PATH: join(folder, 'gone') }, 'linux')).toBeUndefined();
    expect(findChromium({ PATH: folder, CHROMIUM_PATH: '' }, 'linux')).toBe(chromium);
  });
});

describe.skipIf(process.platform === 'win32')('a page is printed', () => {
  /** Prints by such a program, and sees that nothing of it stays behind. */
  async function print(script: string, options: PrintOptions = {}): Promise<Uint8Array | AppError> {
    const folder = scratchFolder();
    const path = program(folder, 'chromium', script);
    const before = process.env['TMPDIR'];
    process.env['TMPDIR'] = folder;
    onTestFinished(() => {
      if (before === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = before;
    });
    expect(tmpdir()).toBe(folder);
    try {
      return await printPdf('<p>page</p>', { ...options, environment: { CHROMIUM_PATH: path } });
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    } finally {
      expect(readdirSync(folder).filter((name) => name.startsWith('queuescope-pdf'))).toEqual([]);
    }
  }

  test('and its PDF handed over', async () => {
    const pdf = await print(`printf '%%PDF-1.4\\n%%%%EOF\\n' > "$pdf"`);
    expect(pdf).toEqual(Buffer.from('%PDF-1.4\n%%EOF\n'));
  });

  test.each([
    ['ends with a fault', 'exit 3', 'it ended with code 3'],
    ['writes nothing', 'true', 'it wrote none'],
    ['writes a half', `printf '%%PDF-1.4\\n' > "$pdf"`, 'it wrote none'],
    ['writes something else', `echo no > "$pdf"`, 'it wrote none'],
    ['does not end', 'exec sleep 60', 'it took longer than 0.5 s'],
  ])('unless the program %s', async (_what, script, words) => {
    const failure = await print(script, { deadlineMs: 500 });
    expect(failure).toMatchObject({
      kind: 'file-failed',
      message: expect.stringContaining(words) as unknown,
    });
  });

  test('unless it is stopped', async () => {
    const failure = await print('exec sleep 60', { signal: AbortSignal.timeout(300) });
    expect(failure).toMatchObject({ kind: 'cancelled' });
  });

  test('unless there is no program for it, which is said with what helps', async () => {
    const nothing = printPdf('', { environment: { PATH: scratchFolder() } });
    await expect(nothing).rejects.toMatchObject({
      kind: 'file-failed',
      message: expect.stringContaining('there is no Chromium') as unknown,
      remedy: expect.stringContaining('CHROMIUM_PATH') as unknown,
    });
    const gone = join(scratchFolder(), 'gone');
    expect(existsSync(gone)).toBe(false);
    await expect(printPdf('', { environment: { CHROMIUM_PATH: gone } })).rejects.toThrow(gone);
  });
});
