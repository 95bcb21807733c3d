import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { closeDeadlineUs, restartDelaysUs, soundAfterUs } from '../../electron/engine-supervisor.ts';
import { connectChannel, portChannel, statusChannel } from '../../electron/process-messages.ts';
import { runShell } from '../../electron/shell.ts';
import { silentLog } from '../../src/base/log.ts';
import { ManualSchedule } from '../harness/manual-schedule.ts';
import { type DoubleChannelEnd, ElectronDouble } from './electron-double.ts';

let rendererFolder: string;
let electron: ElectronDouble;
let time: ManualSchedule;

beforeAll(async () => {
  rendererFolder = await mkdtemp(join(tmpdir(), 'queuescope-shell-'));
  await writeFile(join(rendererFolder, 'index.html'), '<!doctype html><title>page</title>');
  await writeFile(join(rendererFolder, '..', 'outside.html'), 'secret');
});

afterAll(async () => {
  await rm(rendererFolder, { recursive: true });
  await rm(join(rendererFolder, '..', 'outside.html'));
});

beforeEach(() => {
  electron = new ElectronDouble();
  time = new ManualSchedule();
});

function launch(platform: NodeJS.Platform = 'linux'): Promise<void> {
  return runShell({
    electron: electron.api,
    preload: '/built/preload.cjs',
    rendererFolder,
    engineScript: '/built/engine-process.js',
    platform,
    schedule: time.schedule,
    log: silentLog,
  });
}

/** The shell with its window open and its engine ready. */
async function run(platform?: NodeJS.Platform): Promise<void> {
  const running = launch(platform);
  electron.app.ready();
  await running;
  electron.child.say({ type: 'ready' });
}

describe('the start', () => {
  test('does what has to come before Electron is ready, and nothing else, before it is', async () => {
    const running = launch();
    expect(electron.app.did).toEqual(['sandbox', 'scheme']);
    expect(electron.schemes).toMatchObject([{ scheme: 'app', privileges: { standard: true, secure: true } }]);
    expect(electron.windows.length + electron.children.length).toBe(0);
    electron.app.ready();
    await running;
    expect(electron.windows.length).toBe(1);
    expect(electron.children.map(({ script }) => script)).toEqual(['/built/engine-process.js']);
  });

  test('of a second instance ends at once, and brings the window of the first to the front', async () => {
    await run();
    electron.window.minimized = true;
    electron.app.emit('second-instance');
    expect(electron.window).toMatchObject({ minimized: false, focused: true });

    electron = new ElectronDouble();
    electron.app.firstInstance = false;
    await launch();
    expect(electron.app.did).toEqual(['sandbox', 'scheme', 'quit']);
    expect(electron.windows.length + electron.children.length).toBe(0);
  });

  test('opens a window that can do nothing but show its page', async () => {
    await run();
    expect(electron.window.options.webPreferences).toMatchObject({
      preload: '/built/preload.cjs',
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      nodeIntegrationInWorker: false,
      nodeIntegrationInSubFrames: false,
      webSecurity: true,
      webviewTag: false,
    });
    expect(electron.window.loaded).toEqual(['app://queuescope/']);
    expect(electron.window.shown).toBe(false);
    electron.window.emit('ready-to-show');
    expect(electron.window.shown).toBe(true);
    expect(electron.menu).toEqual(expect.arrayContaining([{ role: 'editMenu' }]));
  });
});

describe('the window', () => {
  const prevented = (event: string, details: object = {}): boolean => {
    const preventDefault = vi.fn();
    electron.window.webContents.emit(event, { preventDefault, ...details });
    return preventDefault.mock.calls.length > 0;
  };

  test('stays on its page', async () => {
    await run();
    for (const url of [
      'https://example.com/',
      'file:///etc/passwd',
      'app://other/',
      'app://queuescope/other',
    ]) {
      expect(prevented('will-navigate', { url })).toBe(true);
      expect(prevented('will-frame-navigate', { url })).toBe(true);
    }
    expect(prevented('will-navigate', { url: 'app://queuescope/' })).toBe(false);
    expect(prevented('will-redirect')).toBe(true);
    expect(prevented('will-attach-webview')).toBe(true);
    expect(electron.window.webContents.openHandler?.({ url: 'https://example.com/' })).toEqual({
      action: 'deny',
    });
  });

  test('has no permission but to write to the clipboard, and no device', async () => {
    await run();
    const asked: [string, boolean][] = [];
    for (const permission of ['usb', 'serial', 'media', 'geolocation', 'notifications', 'clipboard-read']) {
      const callback = (granted: boolean): void => void asked.push([permission, granted]);
      electron.handler('permission request')({}, permission, callback, {
        requestingUrl: 'app://queuescope/',
      });
      asked.push([
        permission,
        electron.handler('permission check')({}, permission, 'app://queuescope') as boolean,
      ]);
    }
    expect(asked.length).toBe(12);
    expect(asked.filter(([, granted]) => granted)).toEqual([]);
    const check = electron.handler('permission check');
    expect(check({}, 'clipboard-sanitized-write', 'app://queuescope/')).toBe(true);
    expect(check({}, 'clipboard-sanitized-write', 'app://queuescope.evil')).toBe(false);
    expect(check({}, 'clipboard-sanitized-write', 'https://example.com')).toBe(false);
    expect(electron.handler('device')({})).toBe(false);
    const display = vi.fn();
    electron.handler('display')({}, display);
    expect(display).toHaveBeenCalledWith(null);
  });

  test('reaches no network, and saves only what the page made', async () => {
    await run();
    const cancelled = (url: string): boolean => {
      let cancel = false;
      electron.handler('request')({ url }, (answer: { cancel: boolean }) => ({ cancel } = answer));
      return cancel;
    };
    expect(
      ['https://example.com/', 'http://127.0.0.1/', 'wss://example.com/', 'file:///etc/passwd'].map(
        cancelled,
      ),
    ).toEqual([true, true, true, true]);
    expect(
      ['app://queuescope/assets/a.js', 'devtools://devtools/x', 'blob:app://queuescope/1'].map(cancelled),
    ).toEqual([false, false, false]);
    const refused = (url: string): boolean => {
      const preventDefault = vi.fn();
      electron.session.defaultSession.emit('will-download', { preventDefault }, { getURL: () => url });
      return preventDefault.mock.calls.length > 0;
    };
    expect(refused('https://example.com/x.exe')).toBe(true);
    expect(refused('blob:app://queuescope/0b1c')).toBe(false);
  });

  test('gets its files under the policy of the browser host, and only those of its folder', async () => {
    await run();
    const answer = (url: string, method = 'GET') =>
      electron.handler('protocol app')({ url, method }) as Promise<Response>;
    const page = await answer('app://queuescope/');
    expect([page.status, await page.text()]).toEqual([200, '<!doctype html><title>page</title>']);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    for (const url of [
      'app://queuescope/../outside.html',
      'app://queuescope/%2e%2e/outside.html',
      'app://queuescope/..%2foutside.html',
      'app://other/index.html',
      'app://queuescope.evil/index.html',
    ]) {
      const { status } = await answer(url);
      expect([url, status >= 400]).toEqual([url, true]);
    }
    expect((await answer('app://queuescope/', 'POST')).status).toBe(404);
  });

  test('is loaded again when its page crashes, but not for ever', async () => {
    await run();
    electron.window.webContents.emit('render-process-gone', {}, { reason: 'clean-exit' });
    expect(electron.window.loaded.length).toBe(1);
    for (let n = 0; n < 10; n++) {
      electron.window.webContents.emit('render-process-gone', {}, { reason: 'crashed' });
    }
    expect(electron.window.loaded.length).toBe(4);
  });
});

describe('the way from page to engine', () => {
  const portsOfPage = () => electron.window.webContents.ports;

  test('is one channel: one end to the engine, the other to the page that asked', async () => {
    await run();
    electron.send(connectChannel, electron.window.webContents);
    expect(portsOfPage().map(({ channel }) => channel)).toEqual([portChannel]);
    const pageEnd = portsOfPage()[0]?.ports[0] as DoubleChannelEnd;
    expect(electron.child.posted).toEqual([{ message: { type: 'client' }, ports: [pageEnd.peer] }]);
  });

  test('is not for a frame in the page, nor for another page', async () => {
    await run();
    const { webContents } = electron.window;
    electron.send(connectChannel, webContents, { parent: {}, url: 'app://queuescope/' });
    electron.send(connectChannel, webContents, { parent: null, url: 'https://example.com/' });
    electron.send(connectChannel, webContents, { parent: null, url: 'app://queuescope.evil/' });
    electron.send(connectChannel, webContents, null);
    electron.send(statusChannel, webContents, { parent: null, url: 'https://example.com/' });
    expect(portsOfPage()).toEqual([]);
    expect(webContents.sent).toEqual([{ channel: statusChannel, message: { state: 'running', reason: '' } }]);
  });

  test('waits for an engine that is not running yet', async () => {
    const running = launch();
    electron.app.ready();
    await running;
    electron.send(statusChannel, electron.window.webContents);
    electron.send(connectChannel, electron.window.webContents);
    expect(electron.window.webContents.sent).toMatchObject([{ message: { state: 'restarting' } }]);
    expect(portsOfPage()).toEqual([]);
    electron.child.say({ type: 'ready' });
    expect(portsOfPage().length).toBe(1);
  });
});

describe('an engine that crashes', () => {
  const states = (): unknown[] => electron.window.webContents.sent.map(({ message }) => message);

  test('is started again, the page is told why, and may connect again', async () => {
    await run();
    electron.send(connectChannel, electron.window.webContents);
    electron.child.end(11);
    expect(states().at(-1)).toEqual({
      state: 'restarting',
      reason: 'The engine stopped: its process ended with code 11.',
    });
    electron.send(connectChannel, electron.window.webContents);
    expect(electron.children.length).toBe(1);
    time.advance(restartDelaysUs[0] ?? 0);
    expect(electron.children.length).toBe(2);
    electron.child.say({ type: 'ready' });
    expect(states().at(-1)).toEqual({ state: 'running', reason: '' });
    expect(electron.window.webContents.ports.length).toBe(2);
    expect(electron.child.posted.map(({ message }) => message.type)).toEqual(['client']);
  });

  test('again and again is given up, with its own last words', async () => {
    await run();
    for (const delayUs of restartDelaysUs) {
      electron.child.say({ type: 'failed', reason: 'libusb cannot be loaded' });
      electron.child.end(1);
      expect(states().at(-1)).toMatchObject({ state: 'restarting' });
      time.advance(delayUs);
    }
    electron.child.say({ type: 'failed', reason: 'libusb cannot be loaded' });
    electron.child.end(1);
    expect(states().at(-1)).toEqual({
      state: 'failed',
      reason: 'The engine stopped again and again: libusb cannot be loaded.',
    });
    time.advance(soundAfterUs);
    expect(electron.children.length).toBe(1 + restartDelaysUs.length);
  });

  test('after a long sound run counts as the first time', async () => {
    await run();
    for (let n = 0; n < restartDelaysUs.length + 3; n++) {
      time.advance(soundAfterUs);
      electron.child.end(1);
      time.advance(restartDelaysUs[0] ?? 0);
      electron.child.say({ type: 'ready' });
    }
    expect(states().at(-1)).toEqual({ state: 'running', reason: '' });
  });
});

describe('sleep', () => {
  test('and waking up are told to the engine', async () => {
    await run();
    electron.powerMonitor.emit('suspend');
    electron.powerMonitor.emit('resume');
    expect(electron.child.posted.map(({ message }) => message)).toEqual([
      { type: 'power', change: 'suspend' },
      { type: 'power', change: 'resume' },
    ]);
  });
});

describe('the end', () => {
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

  test('waits until the engine has given its devices back', async () => {
    await run();
    electron.app.emit('window-all-closed');
    expect(electron.child.posted.at(-1)?.message).toEqual({ type: 'close' });
    await settle();
    expect(electron.app.did).not.toContain('quit');
    electron.child.end(0);
    await settle();
    expect(electron.app.did).toContain('quit');
    expect(electron.child.killed).toBe(false);
    expect(time.pendingCount).toBe(0);
  });

  test('does not wait for ever', async () => {
    await run();
    electron.app.quit();
    time.advance(closeDeadlineUs - 1);
    await settle();
    expect(electron.app.did).not.toContain('quit');
    time.advance(1);
    await settle();
    expect(electron.child.killed).toBe(true);
    expect(electron.app.did).toContain('quit');
  });

  test('does not wait for an engine that is gone, and starts no other', async () => {
    await run();
    electron.child.end(1);
    electron.app.quit();
    await settle();
    expect(electron.app.did).toContain('quit');
    time.advance(soundAfterUs);
    expect(electron.children.length).toBe(1);
  });

  test('asks only once, however often it is asked for', async () => {
    await run();
    electron.app.quit();
    electron.app.quit();
    expect(electron.child.posted.filter(({ message }) => message.type === 'close').length).toBe(1);
    electron.child.end(0);
    await settle();
    expect(electron.app.did.filter((what) => what === 'quit').length).toBeGreaterThan(0);
  });
});
