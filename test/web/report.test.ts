import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { printPdf } from '../../src/hosts/print-pdf.ts';
import { RecordingReader } from '../../src/recording/recording-reader.ts';
import { createReport } from '../../src/report/create-report.ts';
import { chromiumPath, launchChromium } from '../harness/chromium.ts';
import { hostileText, recordHostileSession } from '../harness/hostile-session.ts';
import { recordSyntheticSession } from '../harness/synthetic-session.ts';

const executablePath = chromiumPath();
const required = (process.env['REQUIRE'] ?? '').split(/[\s,]+/).includes('web');

/** Boxes in the page's pixels. */
interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

describe.skipIf(executablePath === undefined && !required)('the HTML report in a browser', () => {
  let browser: Browser;
  let folder: string;
  let page: Page | undefined;
  const pages = { synthetic: '', hostile: '' };

  beforeAll(async () => {
    if (executablePath === undefined) throw new Error('there is no Chromium here');
    browser = await launchChromium(executablePath);
    folder = await mkdtemp(join(tmpdir(), 'queuescope-report-'));
    for (const name of ['synthetic', 'hostile'] as const) {
      const recording = join(folder, `${name}.qscope`);
      if (name === 'hostile') recordHostileSession(recording);
      else recordSyntheticSession(recording, { gap: { fromUs: 26e6, toUs: 31e6 } });
      const reader = RecordingReader.open(recording);
      const report = createReport(reader, 'html', name === 'hostile' ? { title: hostileText } : {});
      reader.close();
      const path = join(folder, report.fileName);
      await writeFile(path, report.text);
      pages[name] = pathToFileURL(path).href;
    }
  }, 60_000);

  afterEach(async () => {
    await page?.close();
    page = undefined;
  });

  afterAll(async () => {
    await browser?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  test('is printed as a PDF of a few pages', async () => {
    const pdf = await printPdf(await readFile(fileURLToPath(pages.synthetic), 'utf8'));
    const text = Buffer.from(pdf).toString('latin1');
    expect(text).toMatch(/^%PDF-1\.\d/);
    expect(text).toMatch(/\/MediaBox \[0 0 59[45][.\d]* 84[12][.\d]*\]/);
    const count = Number(/\/Type \/Pages\s+\/Count (\d+)/.exec(text)?.[1]);
    expect(count).toBeGreaterThanOrEqual(2);
    expect(count).toBeLessThanOrEqual(6);
  }, 90_000);

  /** Opens a report without a network; what it asks for and complains about is kept. */
  async function open(
    name: keyof typeof pages,
    viewport: { width: number; height: number },
    colorScheme: 'light' | 'dark' = 'light',
  ): Promise<{ page: Page; requests: string[]; complaints: string[] }> {
    const context = await browser.newContext({ viewport, colorScheme, offline: true });
    page = await context.newPage();
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', (dialog) => complaints.push(dialog.message()));
    await page.goto(pages[name]);
    return { page, requests, complaints };
  }

  const boxes = (selector: string): Promise<Box[]> =>
    (page as Page).evaluate(
      (chosen) =>
        [...document.querySelectorAll(chosen)].map((element) => {
          const { left, right, top, bottom } = element.getBoundingClientRect();
          return { left, right, top, bottom };
        }),
      selector,
    );

  const overflow = (): Promise<number> =>
    (page as Page).evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );

  test('asks for nothing, complains of nothing, and its charts stand over one another', async () => {
    const { requests, complaints } = await open('synthetic', { width: 1100, height: 900 });
    expect(requests).toEqual([pages.synthetic]);
    expect(complaints).toEqual([]);
    const plots = (await boxes('figure:first-of-type .plot')).slice(0, 3);
    expect(plots).toHaveLength(3);
    for (const plot of plots) {
      expect(plot.left).toBeCloseTo(plots[0]?.left ?? 0, 3);
      expect(plot.right).toBeCloseTo(plots[0]?.right ?? 0, 3);
      expect(plot.bottom - plot.top).toBeGreaterThan(60);
    }
    expect(await overflow()).toBe(0);
  });

  test('draws every quantity, in the colour that its legend has', async () => {
    await open('synthetic', { width: 1100, height: 900 });
    const colours = await (page as Page).evaluate(() => {
      const strokes = (selector: string): string[] =>
        [...document.querySelectorAll(selector)].map((element) => getComputedStyle(element).stroke);
      return [
        'inflight',
        'limit',
        'backlog',
        'round-trip',
        'driver-queue',
        'qdisc-wait',
        'up',
        'down',
        'lost',
      ].map((quantity) => ({
        quantity,
        legend: strokes(`.legend .line-${quantity}`),
        chart: strokes(`.charts .line-${quantity}`),
      }));
    });
    for (const { quantity, legend, chart } of colours) {
      expect(chart.length, quantity).toBeGreaterThan(0);
      expect(legend[0], quantity).toBe(chart[0]);
      expect(chart[0], quantity).toMatch(/^rgb/);
    }
    const drawn = await boxes('.charts .line-limit, .charts .fill-inflight, .charts .dots-round-trip');
    for (const box of drawn) expect(box.right - box.left).toBeGreaterThan(400);
    const hatched = await boxes('.charts rect[fill="url(#off-hatch)"]');
    expect(hatched.length).toBeGreaterThanOrEqual(3 * 2);
  });

  test('is light or dark as the reader has it, and always light on paper', async () => {
    const ground = (): Promise<string> =>
      (page as Page).evaluate(() => getComputedStyle(document.body).backgroundColor);
    await open('synthetic', { width: 1100, height: 900 }, 'dark');
    expect(await ground()).toBe('rgb(21, 24, 29)');
    await (page as Page).emulateMedia({ media: 'print' });
    expect(await ground()).toBe('rgb(255, 255, 255)');
    await (page as Page).emulateMedia({ media: 'screen', colorScheme: 'light' });
    expect(await ground()).toBe('rgb(255, 255, 255)');
  });

  test('fits a phone, and has the charts on the first sheet of A4', async () => {
    await open('synthetic', { width: 390, height: 800 });
    expect(await overflow()).toBe(0);
    // 210 by 297 mm less the margins, at 96 pixels an inch.
    const sheet = { width: 695, height: 1016 };
    await (page as Page).setViewportSize(sheet);
    await (page as Page).emulateMedia({ media: 'print' });
    expect(await overflow()).toBe(0);
    const [charts] = await boxes('figure');
    expect(charts?.bottom).toBeLessThanOrEqual(sheet.height);
  });

  test('shows a hostile name as a name', async () => {
    const { page: opened, requests, complaints } = await open('hostile', { width: 1100, height: 900 });
    expect(requests).toEqual([pages.hostile]);
    expect(complaints).toEqual([]);
    expect(await opened.title()).not.toBe('owned');
    expect(await opened.locator('h1').textContent()).toContain('<script>document.title = ');
    expect(await opened.locator('script, img, [onload], [onerror], [style]').count()).toBe(0);
    expect(await overflow()).toBe(0);
  });
});
