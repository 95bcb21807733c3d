import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

/**
 * `npm run screenshots`: the pictures in docs/images, taken from the running app with its virtual modem.
 * Needs a Chromium: CHROMIUM_PATH, or /usr/bin/chromium.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const images = join(root, 'docs', 'images');
const recordings = mkdtempSync(join(tmpdir(), 'queuescope-screenshots-'));
const size = { width: 1440, height: 900 };
/** Long enough for a round trip's median to settle and for the charts to tell a story. */
const settleMs = 12_000;
/** A minute, and what comes before and after it. */
const experimentMs = 120_000;

/** Starts the browser host; answers with its URL and the way to end it. */
async function serve() {
  const child = spawn(process.execPath, [join(root, 'build', 'queuescope.mjs'), 'serve'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, QUEUESCOPE_RECORDINGS: recordings },
  });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      const match = /http:\S+/.exec(text);
      if (match !== null) resolve(match[0]);
    });
    child.once('exit', () => reject(new Error('the browser host ended')));
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  return {
    url,
    close: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

async function takePictures(url) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
  });
  const shoot = (page, name) => page.screenshot({ path: join(images, `${name}.png`) });
  try {
    const page = await browser.newPage({ viewport: size, colorScheme: 'light' });
    await page.goto(url);
    await page.getByRole('button', { name: 'Try the virtual modem' }).click();
    await page.waitForTimeout(settleMs);
    await shoot(page, 'bql-on');
    await page.getByRole('switch').first().click();
    await page.waitForTimeout(settleMs);
    await shoot(page, 'bql-off');
    await page.getByRole('switch').first().click();
    await page.waitForTimeout(settleMs / 2);
    await shoot(page, 'live-view');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForTimeout(1000);
    await shoot(page, 'live-view-dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Experiment' }).click();
    await page.getByText('quick-ab').first().click();
    await page.getByRole('button', { name: 'Run quick-ab' }).click();
    await page.getByText('percent CI').waitFor({ timeout: experimentMs });
    await page.waitForTimeout(500);
    await shoot(page, 'experiment');
  } finally {
    await browser.close();
  }
}

mkdirSync(images, { recursive: true });
const host = await serve();
try {
  await takePictures(host.url);
} finally {
  await host.close();
  rmSync(recordings, { recursive: true, force: true });
}
