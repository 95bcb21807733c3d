import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { rendererConfig } from '../../build/vite.renderer.mjs';
import { startWebHost, type WebHost } from '../../src/hosts/web/web-host.ts';
import { chromiumPath, launchChromium } from '../harness/chromium.ts';
import { FakeEngine } from '../harness/fake-engine.ts';
import type { FakePage } from './fake-page/main.ts';

const executablePath = chromiumPath();
const required = (process.env['REQUIRE'] ?? '').split(/[\s,]+/).includes('web');
const repository = fileURLToPath(new URL('../../', import.meta.url));
const patience = { timeout: 10_000 };

type PageWindow = typeof globalThis & { readonly fakePage: FakePage };

describe.skipIf(executablePath === undefined && !required)(
  'the experiment in a real browser',
  { timeout: 30_000 },
  () => {
    let folder: string;
    let browser: Browser;
    let host: WebHost;
    let complaints: string[] = [];

    beforeAll(async () => {
      if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
      folder = await mkdtemp(join(tmpdir(), 'queuescope-experiment-'));
      await build(rendererConfig({ root: join(repository, 'test/web/fake-page'), outFolder: folder }));
      host = await startWebHost({ engine: new FakeEngine(), rendererFolder: folder });
      browser = await launchChromium(executablePath);
    }, 60_000);

    afterAll(async () => {
      await browser?.close();
      await host?.close();
      if (folder !== undefined) await rm(folder, { recursive: true });
    });

    afterEach(async () => {
      for (const context of browser.contexts()) await context.close();
      if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('; ')}`);
    });

    /** The place of experiments, in front of a made-up engine; the page may not complain. */
    async function openExperiment(options: BrowserContextOptions = {}): Promise<Page> {
      complaints = [];
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
      const page = await context.newPage();
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(`http://127.0.0.1:${host.port}/?bench=full`);
      await page.getByRole('button', { name: 'Experiment' }).click();
      await page.getByRole('heading', { name: 'Experiment' }).waitFor(patience);
      return page;
    }

    /** Lets the made-up engine of the page go on faster than the clock. */
    function pass(page: Page, seconds: number): Promise<void> {
      return page.evaluate((count) => {
        for (let i = 0; i < count; i++) (globalThis as PageWindow).fakePage.engine.advance(100_000);
      }, seconds * 10);
    }

    function lastCall(
      page: Page,
    ): Promise<{ readonly method: string; readonly params: unknown } | undefined> {
      return page.evaluate(() => (globalThis as PageWindow).fakePage.engine.calls.at(-1));
    }

    async function run(page: Page, scenario: string): Promise<void> {
      await page.getByRole('radio', { name: scenario }).check();
      await page.getByRole('combobox', { name: 'Device' }).selectOption('sim:modem');
      await page.getByRole('button', { name: `Run ${scenario}` }).click();
      await page.getByRole('progressbar').waitFor(patience);
    }

    test('scenarios say how long they take, how much data, what was fitted and what they cannot do', async () => {
      const page = await openExperiment();
      const textOf = async (name: string): Promise<string> =>
        (await page.locator('.scenario', { hasText: name }).textContent()) ?? '';
      await page.getByRole('radio', { name: 'quick-ab' }).waitFor(patience);
      expect(await textOf('quick-ab')).toContain('60 s, 14 segments');
      expect(await textOf('quick-ab')).toContain('BQL off against BQL on');
      expect(await textOf('seed-100mbit')).toContain('Fitted: the device’s FIFO');
      expect(await textOf('rrul-like')).toContain('Without a TAP interface: iperf3-tcp not run');
      await page.getByRole('combobox', { name: 'Device' }).selectOption('sim:modem');
      expect(await textOf('field-ab')).toContain('no real data');
      const real = page
        .getByRole('combobox', { name: 'Device' })
        .locator('option:not([value^="sim:"])')
        .first();
      await page
        .getByRole('combobox', { name: 'Device' })
        .selectOption((await real.getAttribute('value')) ?? '');
      expect(await textOf('field-ab')).toContain('at most 500 MB');
      expect(await textOf('quick-ab')).toContain('up to 75.0 MB at 10 Mbit/s');
    });

    test('runs, says where it is and how long still, and ends with a verdict and its evidence', async () => {
      const page = await openExperiment();
      await run(page, 'quick-ab');
      await pass(page, 20);
      const progress = page.getByRole('region', { name: 'Progress' });
      await expect.poll(() => progress.textContent(), patience).toMatch(/segment [3-7] of 14/);
      expect(await progress.textContent()).toMatch(/0:[34]\d left/);
      expect(await progress.locator('.experiment-now').textContent()).toMatch(/^BQL (?:on|off) \d$/);
      await pass(page, 45);
      const verdict = page.getByRole('region', { name: 'Verdict' });
      await expect
        .poll(() => verdict.textContent(), patience)
        .toContain('BQL cut the loaded p95 of a priority ping from 352 to 21.0 ms');
      expect(await verdict.locator('.verdict-sentence b').textContent()).toBe('improved');
      expect(await verdict.textContent()).toContain('Met: rttP95Us of BQL on');
      expect(await verdict.getByRole('row', { name: 'BQL off 6' }).textContent()).toContain(
        '343 ms371 ms377 ms',
      );
      expect(await verdict.getByRole('row', { name: 'BQL on A+' }).textContent()).toContain('2,050');
      expect(await verdict.getByText('p99 is no more than the longest').isVisible()).toBe(true);
      // A curve for each arm and one without load, each from the bottom of the plot to its top.
      const curves = verdict.locator('.distribution > svg .curve');
      expect(await curves.count()).toBe(3);
      for (const path of await curves.all()) {
        const d = (await path.getAttribute('d')) ?? '';
        expect(d).toMatch(/^M\d+(?:\.\d+)? 186\.0L/);
        expect(d).toMatch(/ 6\.0$/);
      }
      expect(await verdict.locator('.distribution').textContent()).toContain('logarithmic');
      const download = page.waitForEvent('download');
      await verdict.getByRole('button', { name: 'HTML' }).click();
      expect((await download).suggestedFilename()).toMatch(/\.html$/);
      await page.getByRole('button', { name: 'New experiment' }).click();
      await page.getByRole('button', { name: 'Run quick-ab' }).waitFor(patience);
    });

    test('a cap on data goes along; stopping keeps what is there and says how much would be enough', async () => {
      const page = await openExperiment();
      await page.getByRole('radio', { name: 'field-ab' }).check();
      await page.getByLabel('Data, at most').fill('50');
      await page.getByLabel('Data, at most').press('Tab');
      await page.getByRole('combobox', { name: 'Device' }).selectOption('sim:modem');
      await page.getByRole('button', { name: 'Run field-ab' }).click();
      await page.getByRole('progressbar').waitFor(patience);
      const calls = await page.evaluate(() =>
        (globalThis as PageWindow).fakePage.engine.calls.filter(
          ({ method }) => method === 'experiment.start',
        ),
      );
      expect(calls.at(-1)?.params).toMatchObject({
        deviceId: 'sim:modem',
        scenario: 'field-ab',
        maxDataBytes: 50e6,
        record: true,
      });
      await pass(page, 30);
      await expect
        .poll(() => page.locator('.experiment-progress').textContent(), patience)
        .toContain('of at most 50.0 MB');
      await page.getByRole('button', { name: 'Stop' }).click();
      const verdict = page.getByRole('region', { name: 'Verdict' });
      await expect.poll(() => verdict.textContent(), patience).toContain('(54 s) would be enough');
      expect(await verdict.textContent()).toContain('ended before its time');
      expect(await verdict.textContent()).toContain('stopped on request');
      expect((await lastCall(page))?.method).toBe('experiment.stop');
    });

    test('with the keyboard alone, from the choice to the verdict', async () => {
      const page = await openExperiment();
      await page.getByRole('radio', { name: 'quick-ab' }).focus();
      await page.keyboard.press('ArrowDown');
      expect(await page.getByRole('radio', { name: 'field-ab' }).isChecked()).toBe(true);
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      await page.getByRole('progressbar').waitFor(patience);
      await pass(page, 70);
      await page.locator('.verdict-sentence').waitFor(patience);
    });

    test('what goes wrong at the start is said, and the choice stays', async () => {
      const page = await openExperiment();
      await page.getByRole('radio', { name: 'field-ab' }).check();
      await page.getByRole('combobox', { name: 'Device' }).selectOption('sim:modem');
      await page.evaluate(() => {
        const { engine } = (globalThis as PageWindow).fakePage;
        engine.refusals.set('experiment.start', new Error('another program has it') as never);
      });
      await page.getByRole('button', { name: 'Run field-ab' }).click();
      await page.getByRole('alert').getByText('another program has it').waitFor(patience);
      await page.evaluate(() => {
        const { engine } = (globalThis as PageWindow).fakePage;
        void engine.call('session.start', { deviceId: 'sim:modem', record: false });
      });
      // Its device is taken: another one is offered in its place, or none.
      await expect
        .poll(() => page.getByRole('combobox', { name: 'Device' }).inputValue(), patience)
        .not.toBe('sim:modem');
      expect(await page.getByRole('radio', { name: 'field-ab' }).isChecked()).toBe(true);
    });

    test('fits a small window and a dark one', async () => {
      const page = await openExperiment({ viewport: { width: 820, height: 900 }, colorScheme: 'dark' });
      await run(page, 'quick-ab');
      await pass(page, 70);
      await page.locator('.verdict-sentence').waitFor(patience);
      const widths = await page.evaluate(() => {
        const place = document.querySelector('.page');
        return { needed: place?.scrollWidth ?? 0, there: place?.clientWidth ?? 0 };
      });
      expect(widths.needed).toBeLessThanOrEqual(widths.there);
    });
  },
);
