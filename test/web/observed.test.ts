/** An interface that the kernel keeps, in the window: over the real engine, which reads a folder made up like sysfs. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rendererConfig } from '../../build/vite.renderer.mjs';
import { silentLog } from '../../src/base/log.ts';
import { Engine } from '../../src/engine/engine.ts';
import { monotonicClock } from '../../src/engine/monotonic-clock.ts';
import { NetdevSource } from '../../src/engine/netdev-source.ts';
import { startWebHost, type WebHost } from '../../src/hosts/web/web-host.ts';
import { LimitsJournal } from '../../src/observe/limits-journal.ts';
import { NetdevFiles } from '../../src/observe/netdev-files.ts';
import { chromiumPath, launchChromium } from '../harness/chromium.ts';
import { FakeNetdevs } from '../unit/observe/fake-netdevs.ts';
import { FakePrograms } from '../unit/observe/fake-programs.ts';

const executablePath = chromiumPath();
const required = (process.env['REQUIRE'] ?? '').split(/[\s,]+/).includes('web');
const patience = { timeout: 10_000 };

describe.skipIf(executablePath === undefined && !required)(
  'an observed interface',
  { timeout: 30_000 },
  () => {
    const system = new FakeNetdevs();
    const programs = new FakePrograms();
    let folder: string;
    let engine: Engine;
    let host: WebHost;
    let browser: Browser;
    let page: Page;

    beforeAll(async () => {
      if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
      folder = await mkdtemp(join(tmpdir(), 'queuescope-observed-'));
      await build(
        rendererConfig({
          root: fileURLToPath(new URL('../../renderer', import.meta.url)),
          outFolder: folder,
        }),
      );
      const bus = { path: 'usb1/1-1/1-1:1.0', driver: 'cdc_ncm', bus: 'usb' };
      system.add('usb0', { index: 7, device: bus });
      system.setLimit('usb0', 'limit', 3028);
      system.add('usb1', { index: 8, bqlQueues: 0, device: { ...bus, path: 'usb1/1-2/1-2:1.0' } });
      system.routes([['usb0', '0100090A', 100]]);
      engine = new Engine({
        sources: [
          new NetdevSource(
            {
              files: new NetdevFiles(system.root),
              journal: new LimitsJournal(join(system.root, 'run')),
              startProgram: programs.start,
              kernelRelease: '6.19.0',
              addressesOf: () => ['10.9.0.2/24'],
              wallClockUs: () => Date.now() * 1000,
            },
            monotonicClock,
            silentLog,
          ),
        ],
        remote: undefined,
        archive: undefined,
        version: '0.0.0',
        host: 'web',
        platform: 'test',
        wallClock: () => new Date().toISOString(),
        newSessionId: () => randomUUID(),
        newSeed: () => 1,
        log: silentLog,
      });
      host = await startWebHost({ engine, rendererFolder: folder });
      browser = await launchChromium(executablePath);
      page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      await page.goto(host.url);
    }, 60_000);

    afterAll(async () => {
      await browser?.close();
      await host?.close();
      await engine?.close();
      system.dispose();
      if (folder !== undefined) await rm(folder, { recursive: true });
    });

    const shows = (text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor(patience);
    const limitMin = (): number => system.getLimit('usb0', 'limit_min');

    test('offers what can be chosen, and no load or address of ours', async () => {
      await page.getByRole('button', { name: 'usb0' }).click(patience);
      await shows('Ready to measure');
      await shows('No load is made here');
      expect(await page.getByRole('switch', { name: 'Load' }).count()).toBe(0);
      expect(await page.getByRole('group', { name: 'Address' }).count()).toBe(0);
      expect(await page.getByLabel('Target').count()).toBe(1);
    });

    test('shows limit and ping live; BQL off raises limit_min, and the end puts it back', async () => {
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);
      const limit = page.locator('.reading', { hasText: 'Limit' }).locator('.reading-value');
      await expect.poll(() => limit.textContent(), patience).toBe('3.03');
      await expect.poll(() => programs.of('ping').length, patience).toBe(1);
      await page.getByRole('switch', { name: 'BQL' }).click();
      await expect.poll(limitMin, patience).toBe(456_000);
      await expect.poll(() => limit.textContent(), patience).toBe('none');
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      await expect.poll(limitMin, patience).toBe(0);
      expect(programs.newest('ping').isStopped).toBe(true);
    });

    test('is lost when it vanishes, and goes on when it is back', async () => {
      await page.getByRole('button', { name: 'Start a new session' }).click(patience);
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);
      system.remove('usb0');
      await shows(/usb0 is gone: unplugged/);
      system.add('usb0', {
        index: 9,
        device: { path: 'usb1/1-1/1-1:1.2', driver: 'cdc_ncm', bus: 'usb' },
      });
      await page.locator('.status', { hasText: 'Running' }).first().waitFor(patience);
      await expect.poll(() => page.getByText(/usb0 is gone: unplugged/).count(), patience).toBe(0);
    });

    test('without BQL says so and has nothing of it to be set', async () => {
      await page.getByRole('button', { name: 'usb1' }).click();
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await shows('The kernel keeps no Byte Queue Limits for usb1.');
      await shows('This interface has no Byte Queue Limits that could be set.');
      expect(await page.getByRole('switch', { name: 'BQL' }).count()).toBe(0);
    });
  },
);
