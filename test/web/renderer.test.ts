import { mkdtemp, readFile, rm } from 'node:fs/promises';
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

/** What the test page hangs on its window. */
type PageWindow = typeof globalThis & { readonly fakePage: FakePage };

describe.skipIf(executablePath === undefined && !required)(
  'the window in a real browser',
  { timeout: 30_000 },
  () => {
    let folder: string;
    let browser: Browser;
    /** The page with a made-up engine inside, and the real page in front of a made-up engine here. */
    let fakeHost: WebHost;
    let realHost: WebHost;
    let engine: FakeEngine;
    let timer: NodeJS.Timeout;
    let complaints: string[] = [];

    beforeAll(async () => {
      if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
      folder = await mkdtemp(join(tmpdir(), 'queuescope-renderer-'));
      const outputs = { fake: join(folder, 'fake'), real: join(folder, 'real') };
      await build(rendererConfig({ root: join(repository, 'test/web/fake-page'), outFolder: outputs.fake }));
      await build(rendererConfig({ root: join(repository, 'renderer'), outFolder: outputs.real }));
      engine = new FakeEngine();
      timer = setInterval(() => engine.advance(25_000), 25);
      fakeHost = await startWebHost({ engine: new FakeEngine(), rendererFolder: outputs.fake });
      realHost = await startWebHost({ engine, rendererFolder: outputs.real });
      browser = await launchChromium(executablePath);
    }, 60_000);

    afterAll(async () => {
      clearInterval(timer);
      await browser?.close();
      await fakeHost?.close();
      await realHost?.close();
      if (folder !== undefined) await rm(folder, { recursive: true });
    });

    afterEach(async () => {
      for (const context of browser.contexts()) await context.close();
      if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('; ')}`);
    });

    /** A page that may not complain: no error on the console, nothing against the Content-Security-Policy. */
    async function openPage(url: string, options: BrowserContextOptions = {}): Promise<Page> {
      complaints = [];
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
      const page = await context.newPage();
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.exposeFunction('complain', (directive: string) => void complaints.push(directive));
      await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
          (globalThis as unknown as { complain(text: string): void }).complain(
            `${effectiveDirective} ${blockedURI}`,
          );
        });
      });
      await page.goto(url);
      await page.locator('.frame').waitFor(patience);
      return page;
    }

    function openFake(query: string, options?: BrowserContextOptions): Promise<Page> {
      return openPage(`http://127.0.0.1:${fakeHost.port}/?${query}`, options);
    }

    /** A number for the drawing of each chart, to tell whether it changed. */
    function drawings(page: Page): Promise<number[]> {
      return page.locator('.chart-frame canvas').evaluateAll((canvases) =>
        canvases.map((canvas) => {
          let hash = 0;
          for (const character of (canvas as HTMLCanvasElement).toDataURL()) {
            hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
          }
          return hash;
        }),
      );
    }

    async function untilAllChartsMove(page: Page): Promise<void> {
      const before = await drawings(page);
      await expect
        .poll(
          async () => (await drawings(page)).filter((drawing, i) => drawing !== before[i]).length,
          patience,
        )
        .toBe(before.length);
    }

    /** The large figure of a reading, as a number in its unit. */
    async function reading(page: Page, name: string): Promise<number> {
      const figure = page.locator('.reading', { hasText: name }).locator('.reading-value');
      return Number((await figure.textContent())?.replaceAll(',', ''));
    }

    /** The browser itself notes on the console that nobody took its call. */
    function dropRefusals(): void {
      complaints = complaints.filter((text) => !text.includes('WebSocket connection'));
    }

    /** Lets the made-up engine of the page go on faster than the clock. */
    function pass(page: Page, seconds: number): Promise<void> {
      return page.evaluate((count) => {
        for (let i = 0; i < count; i++) (globalThis as PageWindow).fakePage.engine.advance(100_000);
      }, seconds * 10);
    }

    test('a newcomer without a device presses one button and sees three charts move', async () => {
      const page = await openFake('bench=virtual');
      await page.getByRole('heading', { name: 'No USB network device found' }).waitFor(patience);
      await page.getByRole('button', { name: 'Try the virtual modem' }).click();
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);
      expect(await page.locator('.chart-frame canvas').count()).toBe(3);
      await untilAllChartsMove(page);
      expect(await page.locator('.stage-done').count()).toBe(5);
      expect(await page.locator('.stage-current').textContent()).toContain('Measure');
    });

    test('the qdisc is chosen by name; fq_codel’s options show with it', async () => {
      const page = await openFake('history=15');
      const choice = page.getByLabel('Qdisc');
      await choice.waitFor(patience);
      expect(await choice.inputValue()).toBe('pfifo_fast');
      expect(await page.getByRole('switch', { name: 'ECN' }).count()).toBe(0);
      await choice.selectOption('fq_codel');
      await page.getByRole('switch', { name: 'ECN' }).waitFor(patience);
      expect(await choice.inputValue()).toBe('fq_codel');
      expect(await page.getByLabel('target').inputValue()).toBe('5');
      expect(await page.getByLabel('interval', { exact: true }).inputValue()).toBe('100');
      await page.getByRole('switch', { name: 'ECN' }).click();
      await expect
        .poll(() => page.getByRole('switch', { name: 'ECN' }).getAttribute('aria-checked'), patience)
        .toBe('false');
      await choice.selectOption('pfifo');
      await expect.poll(() => page.getByRole('switch', { name: 'ECN' }).count(), patience).toBe(0);
    });

    test('switching BQL off raises the latency by what a full queue takes, and says by how much', async () => {
      const page = await openFake('history=15');
      await expect.poll(() => reading(page, 'Round trip'), patience).toBeGreaterThan(0);
      const withBql = await reading(page, 'Round trip');
      expect(withBql).toBeLessThan(60);
      await page.getByRole('switch', { name: 'BQL' }).click();
      await pass(page, 8);
      await expect.poll(() => reading(page, 'Round trip'), patience).toBeGreaterThan(withBql + 340);
      expect(await reading(page, 'Round trip')).toBeLessThan(withBql + 380);
      expect(await page.locator('.reading', { hasText: 'Round trip' }).textContent()).toMatch(
        /▲ 3\d\d ms vs BQL on/,
      );
      expect(await page.locator('.reading', { hasText: 'Limit' }).textContent()).toContain('none');
      expect(await page.locator('.arithmetic').textContent()).toMatch(
        /(299|300) transfers of 1,514 bytes = 45[34] KB = 36\d ms at \d/,
      );
      await page.getByRole('switch', { name: 'BQL' }).click();
      await pass(page, 8);
      await expect.poll(() => reading(page, 'Round trip'), patience).toBeLessThan(withBql + 20);
      expect(await page.locator('.reading', { hasText: 'Round trip' }).textContent()).toMatch(
        /▼ 3\d\d ms vs BQL off/,
      );
    });

    test('pause freezes the view while measuring goes on', async () => {
      const page = await openFake('history=10');
      await untilAllChartsMove(page);
      await page.keyboard.press('Space');
      await page.getByText('View paused, measuring goes on').waitFor(patience);
      // What was being drawn when the key came is drawn by now.
      await page.waitForTimeout(300);
      const frozen = await drawings(page);
      const size = await page.locator('.recording-chip').textContent();
      await pass(page, 5);
      await page.waitForTimeout(300);
      expect(await drawings(page)).toEqual(frozen);
      await expect.poll(() => page.locator('.recording-chip').textContent(), patience).not.toBe(size);
      await page.keyboard.press('Space');
      await untilAllChartsMove(page);
    });

    test('everything can be reached and done with the keyboard, and the focus can be seen', async () => {
      const page = await openFake('bench=virtual');
      const start = page.getByRole('button', { name: 'Try the virtual modem' });
      await start.waitFor(patience);
      for (let i = 0; i < 40 && !(await start.evaluate((it) => it === document.activeElement)); i++) {
        await page.keyboard.press('Tab');
      }
      await page.keyboard.press('Enter');
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);

      const stops = new Map<string, boolean>();
      for (let i = 0; i < 80; i++) {
        await page.keyboard.press('Tab');
        const stop = await page.evaluate(() => {
          const element = document.activeElement;
          if (!(element instanceof HTMLElement) || element === document.body) return undefined;
          const labelled = element instanceof HTMLInputElement ? element.labels?.[0]?.textContent : undefined;
          const name = element.getAttribute('aria-label') ?? labelled ?? element.textContent?.trim() ?? '';
          const outlined = element.closest('.field-box') ?? element;
          const style = getComputedStyle(outlined);
          return { name, seen: style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) >= 2 };
        });
        if (stop !== undefined) stops.set(stop.name, stop.seen);
      }
      expect([...stops].filter(([name, seen]) => name === '' || !seen)).toEqual([]);
      const names = [...stops.keys()];
      for (const wanted of [
        'Devices',
        'Settings',
        'Stop',
        'Pause',
        'Note',
        '30 s',
        'limit_min',
        'Rate',
        'Interval',
        'HTML',
      ]) {
        expect(
          names.some((name) => name.includes(wanted)),
          wanted,
        ).toBe(true);
      }
      expect(names.some((name) => name.startsWith('BQL'))).toBe(true);
      expect(names.some((name) => name.startsWith('Charts on one time axis'))).toBe(true);
      expect(names.some((name) => name.startsWith('Shown part of the session'))).toBe(true);

      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor(patience);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden', ...patience });
      await page.keyboard.press('b');
      await expect
        .poll(() => page.getByRole('switch', { name: 'BQL' }).getAttribute('aria-checked'), patience)
        .toBe('false');
      await page.keyboard.press('n');
      await page.keyboard.type('lift b door');
      await page.keyboard.press('Enter');
      await page.locator('.events', { hasText: 'lift b door' }).waitFor(patience);
      expect(await page.getByRole('switch', { name: 'BQL' }).getAttribute('aria-checked')).toBe('false');
    });

    test('the crosshair says what was at a time, by pointer and by key', async () => {
      const page = await openFake('history=20');
      await untilAllChartsMove(page);
      const stack = page.locator('.chart-stack');
      const box = await stack.boundingBox();
      if (box === null) throw new Error('the charts are not on the page');
      expect(await page.locator('.crosshair').isVisible()).toBe(false);
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.locator('.crosshair').waitFor({ state: 'visible', ...patience });
      await expect
        .poll(() => page.locator('.crosshair-label').textContent(), patience)
        .toMatch(/^0:0\d\.\d · /);
      expect(await page.locator('.legend-value').first().textContent()).toMatch(/ K?B$/);
      await page.mouse.move(2, 2);
      await page.locator('.crosshair').waitFor({ state: 'hidden', ...patience });
      await stack.focus();
      await page.keyboard.press('ArrowLeft');
      await page.locator('.crosshair').waitFor({ state: 'visible', ...patience });
      await page.keyboard.press('Escape');
      await page.locator('.crosshair').waitFor({ state: 'hidden', ...patience });
    });

    test('follows the system to dark and back, and can be told otherwise', async () => {
      const page = await openFake('history=5', { colorScheme: 'dark' });
      const ground = (): Promise<string> =>
        page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await untilAllChartsMove(page);
      expect(await ground()).toBe('rgb(21, 24, 29)');
      const dark = await tickColour(page);
      await page.emulateMedia({ colorScheme: 'light' });
      await expect.poll(ground, patience).toBe('rgb(255, 255, 255)');
      await expect.poll(() => tickColour(page), patience).toBeLessThan(dark - 60);
      await page.keyboard.press('t');
      await expect.poll(ground, patience).toBe('rgb(21, 24, 29)');
      await page.reload();
      await page.locator('.frame').waitFor(patience);
      expect(await ground()).toBe('rgb(21, 24, 29)');
    });

    /** Mean brightness of what is drawn left of the plot: the labels of the value axis. */
    function tickColour(page: Page): Promise<number> {
      return page
        .locator('.chart-frame canvas')
        .first()
        .evaluate((element) => {
          const canvas = element as HTMLCanvasElement;
          const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
          copy?.drawImage(canvas, 0, 0);
          const pixels = copy?.getImageData(0, 0, 55, 150).data ?? new Uint8ClampedArray();
          let sum = 0;
          let count = 0;
          for (let i = 0; i < pixels.length; i += 4) {
            if ((pixels[i + 3] ?? 0) < 200) continue;
            sum += pixels[i] ?? 0;
            count++;
          }
          return sum / count;
        });
    }

    test.each([
      ['unplug', 'Lost', 'Stop waiting'],
      ['stall', 'Stalled', 'Stop'],
    ] as const)('after %s it says so, says why, and offers one thing to do', async (what, words, action) => {
      const page = await openFake('history=5');
      await page.evaluate((method) => (globalThis as PageWindow).fakePage.engine[method]('sim:modem'), what);
      const notice = page.locator('.notice');
      await notice.getByText(`${words}.`).waitFor(patience);
      await notice.getByRole('button', { name: action, exact: true }).click();
      await expect.poll(() => notice.textContent(), patience).toContain('Recorded only');
    });

    test('a problem stays with its remedy, and goes when it is cured', async () => {
      const page = await openFake('bench=full');
      await page.locator('.device-card', { hasText: 'Pixel 8' }).click();
      const problem = page.locator('.problem');
      await problem.getByText('No permission to open').waitFor(patience);
      expect(await problem.locator('pre').textContent()).toContain('/etc/udev/rules.d/');
      await page.evaluate(() => (globalThis as PageWindow).fakePage.engine.setProblems('usb:1-3', []));
      await problem.waitFor({ state: 'hidden', ...patience });
    });

    test.each([360, 400, 600, 760])(
      'a window of %i pixels shows all, and nothing is cut off',
      async (width) => {
        const page = await openFake('history=15');
        await page.setViewportSize({ width, height: 800 });
        await page.locator('.reading-value').first().waitFor(patience);
        // The panels that stood beside it would lie over it now.
        await expect.poll(() => page.locator('.drawer, .device-list').count(), patience).toBe(0);
        const cut = (): Promise<string[]> =>
          page.evaluate(() => {
            const view = document.querySelector('.live-view');
            if (view === null) return ['no live view'];
            const within = view.getBoundingClientRect();
            const shown =
              '.live-header h1, .live-header .button, .stage, .reading, .toolbar > *, .toolbar input';
            return [...view.querySelectorAll(shown)]
              .filter((element) => {
                const { left, right, width: shownWidth } = element.getBoundingClientRect();
                if (shownWidth === 0) return false;
                const isOutside = left < within.left - 1 || right > within.right + 1;
                const isFigure = element.matches('.stage') && element.scrollWidth > element.clientWidth + 1;
                return isOutside || isFigure;
              })
              .map((element) => `${element.className}: ${element.textContent}`);
          });
        await expect.poll(cut, patience).toEqual([]);
      },
    );

    test('several devices run side by side on the same axes', async () => {
      const page = await openFake('history=5');
      await page.getByRole('button', { name: 'Compare' }).click();
      await page.getByRole('button', { name: 'Virtual Ethernet adapter' }).click();
      await expect.poll(() => page.locator('.compare-row').count(), patience).toBe(2);
      await expect.poll(() => page.locator('.compact-readings').count(), patience).toBe(2);
      await untilAllChartsMove(page);
      expect(await page.locator('.chart-frame canvas').count()).toBe(4);
      await page.getByRole('switch', { name: 'BQL on all' }).click();
      await expect
        .poll(() => page.locator('.compare-row [role=switch][aria-checked=false]').count(), patience)
        .toBe(2);
    });

    test.each([
      [800, 600],
      [1280, 720],
    ])('fits into %d × %d', async (width, height) => {
      const page = await openFake('history=5', { viewport: { width, height } });
      await untilAllChartsMove(page);
      const overflow = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        bottom: document.querySelector('.minimap')?.getBoundingClientRect().bottom ?? Number.NaN,
      }));
      expect(overflow.wide).toBe(0);
      expect(overflow.bottom).toBeLessThanOrEqual(height);
    });

    test('reports are handed over as files', async () => {
      const page = await openFake('history=5');
      const waiting = page.waitForEvent('download', patience);
      await page.getByRole('group', { name: 'Report' }).getByRole('button', { name: 'CSV' }).click();
      const download = await waiting;
      expect(download.suggestedFilename()).toBe('session-1-recording.csv');
      expect(await readFile(await download.path(), 'utf8')).toBe('report of session-1-recording');
    });

    test('a report that is not text arrives byte by byte', async () => {
      const page = await openFake('history=5');
      const waiting = page.waitForEvent('download', patience);
      await page.getByRole('group', { name: 'Report' }).getByRole('button', { name: 'Flent' }).click();
      const download = await waiting;
      expect(download.suggestedFilename()).toBe('session-1-recording.flent.gz');
      expect([...(await readFile(await download.path()))]).toEqual([0x1f, 0x8b, 0xff]);
    });

    test('when the connection breaks it keeps what it knew, says so, and goes on when it is back', async () => {
      const page = await openFake('history=5');
      await untilAllChartsMove(page);
      await page.evaluate(() => (globalThis as PageWindow).fakePage.breakLink('The engine was stopped.'));
      const banner = page.locator('.engine-banner');
      await banner.getByText('The engine was stopped.').waitFor(patience);
      expect(await reading(page, 'Round trip')).toBeGreaterThan(0);
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('alert').getByText('The engine stopped:').waitFor(patience);
      await banner.getByRole('button', { name: 'Try now' }).click();
      await banner.waitFor({ state: 'hidden', ...patience });
      await untilAllChartsMove(page);
    });

    test('without the key to the engine it says what to open', async () => {
      const page = await openPage(`http://127.0.0.1:${realHost.port}/`);
      expect(await page.locator('.engine-banner').textContent(patience)).toContain(
        'has no key to the engine',
      );
    });

    test('with a key of another run it says so and goes on trying', async () => {
      const page = await openPage(`http://127.0.0.1:${realHost.port}/#token=${'A'.repeat(43)}`);
      await page.getByText('If it was started again, open the new address').waitFor(patience);
      expect(await page.locator('.engine-banner').textContent()).toMatch(/Next attempt in|Trying now/);
      dropRefusals();
    });

    test('over the real connection: starts, shows, survives a reload, and says when the engine is gone', async () => {
      const page = await openPage(realHost.url);
      await page.getByRole('button', { name: 'Try the virtual modem' }).click();
      await untilAllChartsMove(page);
      expect(page.url()).not.toContain('token');
      await page.reload();
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);
      await untilAllChartsMove(page);
      await realHost.close();
      await page.getByText('No connection to the engine.').waitFor(patience);
      expect(await page.locator('.engine-banner').textContent()).toMatch(
        /engine.*(Next attempt in|Trying now)/,
      );
      dropRefusals();
    });
  },
);
