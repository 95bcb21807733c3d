import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { _electron, type ElectronApplication } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';

/** The shell under a real Electron, where ELECTRON_OVERRIDE_DIST_PATH names a folder with one (and there is a display). */

const folder = process.env['ELECTRON_OVERRIDE_DIST_PATH'] ?? '';
const root = fileURLToPath(new URL('../../', import.meta.url));

describe.skipIf(folder === '')('a real Electron', () => {
  let application: ElectronApplication;
  let profile: string;

  beforeAll(async () => {
    const executablePath = join(folder, 'electron');
    if (!existsSync(executablePath)) {
      throw new Error('ELECTRON_OVERRIDE_DIST_PATH names a folder without Electron');
    }
    await buildTargets({ root });
    profile = await mkdtemp(join(tmpdir(), 'queuescope-profile-'));
    application = await _electron.launch({
      executablePath,
      args: [
        join(root, 'dist/electron/main.js'),
        `--user-data-dir=${profile}`,
        // A test machine's root cannot have the sandbox.
        ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      ],
      env: { ...process.env, QUEUESCOPE_RECORDINGS: profile },
    });
  }, 60_000);

  afterAll(async () => {
    await application?.close();
    if (profile !== undefined) await rm(profile, { recursive: true, force: true });
  });

  test('shows the devices of its engine, and nothing runs against the policy', async () => {
    const page = await application.firstWindow();
    const errors: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    expect(page.url()).toBe('app://queuescope/');
    await page.getByText('Queuescope virtual modem').first().waitFor({ timeout: 20_000 });
    expect(errors).toEqual([]);
  });

  test('gives its page two functions, and neither Node nor another window', async () => {
    const page = await application.firstWindow();
    const names = await page.evaluate(() => {
      const scope = globalThis as unknown as Record<string, object | undefined>;
      return {
        bridge: Object.keys(scope['queuescope'] ?? {}),
        node: ['require', 'process', 'Buffer', 'module'].filter((name) => scope[name] !== undefined),
        opened: globalThis.open('https://example.com/') === null,
      };
    });
    expect(names).toEqual({ bridge: ['connect', 'onEngineStatus'], node: [], opened: true });
  });

  test('starts its engine again when it dies, and the page comes back', async () => {
    const page = await application.firstWindow();
    const pid = await application.evaluate(
      ({ app }) => app.getAppMetrics().find(({ name }) => name === 'Queuescope engine')?.pid,
    );
    expect(pid).toBeDefined();
    if (pid === undefined) return;
    process.kill(pid, 'SIGKILL');
    await expect
      .poll(
        () =>
          application.evaluate(
            ({ app }) => app.getAppMetrics().find(({ name }) => name === 'Queuescope engine')?.pid,
          ),
        { timeout: 10_000 },
      )
      .not.toBe(pid);
    await page.getByText('Queuescope virtual modem').first().waitFor({ timeout: 20_000 });
  });
});
