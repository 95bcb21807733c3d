import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { rendererConfig } from '../../build/vite.renderer.mjs';
import { startWebHost, type WebHost } from '../../src/hosts/web/web-host.ts';
import { chromiumPath, launchChromium } from '../harness/chromium.ts';
import { StubEngine } from '../harness/stub-engine.ts';

const executablePath = chromiumPath();
const required = (process.env['REQUIRE'] ?? '').split(/[\s,]+/).includes('web');
const source = fileURLToPath(new URL('../../src/', import.meta.url));

/** A page of a few lines that reaches the engine through the same code as the real one, built as the real one. */
const pageSource = {
  'index.html': `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>page</title>
    <link rel="icon" href="./icon.svg">
    <script type="module" src="./main.ts"></script>
  </head>
  <body><p id="devices"></p></body>
</html>`,
  'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8H0z"/></svg>',
  'style.css': 'p { color: rgb(1, 2, 3); }',
  'no-eval.ts': 'Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });\nexport {};',
  'main.ts': `
import './no-eval.ts';
import './style.css';
import { EngineClient } from '${source}rpc/client.ts';
import { portOfPageWebSocket } from '${source}rpc/page-web-socket-port.ts';
import { engineSocketPath, subprotocolsOfToken, tokenOfFragment } from '${source}rpc/web-handshake.ts';

const token = tokenOfFragment(location.hash) ?? '';
const socket = new WebSocket('ws://' + location.host + engineSocketPath, subprotocolsOfToken(token));
const client = new EngineClient(portOfPageWebSocket(socket), {
  schedule: (delayUs, action) => {
    const timer = setTimeout(action, delayUs / 1000);
    return () => clearTimeout(timer);
  },
});
const paragraph = document.querySelector('#devices');
const show = (words: string) => {
  if (paragraph !== null) paragraph.textContent = words;
};
client.onClose((reason) => show('closed: ' + reason.kind));
client.subscribe('devices', {}, (devices) => show(devices.map(({ name }) => name).join()));
`,
};

/** The same with what the policy forbids, none of which may happen. */
const hostilePage = `<!doctype html>
<html lang="en">
  <head>
    <title>untouched</title>
    <script>document.title = 'inline script ran';</script>
    <style>body { color: rgb(9, 9, 9); }</style>
    <base href="http://evil.example/">
  </head>
  <body onload="document.title = 'handler ran'" style="margin: 77px">
    <img src="http://evil.example/pixel.png" alt="">
    <iframe src="/"></iframe>
  </body>
</html>`;

interface Seen {
  /** Errors and warnings on the console, and exceptions. */
  readonly messages: string[];
  /** Directives of the policy that something ran against. */
  readonly violations: string[];
}

async function watch(page: Page): Promise<Seen> {
  const seen: Seen = { messages: [], violations: [] };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.messages.push(message.text());
  });
  page.on('pageerror', (error) => seen.messages.push(error.message));
  await page.exposeFunction('seeViolation', (directive: string) => void seen.violations.push(directive));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
      (globalThis as unknown as { seeViolation(directive: string): void }).seeViolation(effectiveDirective);
    });
  });
  return seen;
}

describe.skipIf(executablePath === undefined && !required)('a real browser', () => {
  let folder: string;
  let browser: Browser;
  let engine: StubEngine;
  const hosts: WebHost[] = [];

  beforeAll(async () => {
    if (executablePath === undefined) throw new Error('there is no Chromium on this machine');
    folder = await mkdtemp(join(tmpdir(), 'queuescope-page-'));
    await mkdir(join(folder, 'source'));
    for (const [name, text] of Object.entries(pageSource)) {
      await writeFile(join(folder, 'source', name), text);
    }
    await build(rendererConfig({ root: join(folder, 'source'), outFolder: join(folder, 'built') }));
    await mkdir(join(folder, 'hostile'));
    await writeFile(join(folder, 'hostile', 'index.html'), hostilePage);
    browser = await launchChromium(executablePath);
  });

  afterEach(async () => {
    await Promise.all(hosts.splice(0).map((host) => host.close()));
  });

  afterAll(async () => {
    await browser?.close();
    if (folder !== undefined) await rm(folder, { recursive: true });
  });

  async function start(name: string): Promise<WebHost> {
    engine = new StubEngine();
    engine.onSubscribe = (_topic, send) =>
      send([
        {
          id: 'sim:modem',
          mode: 'simulate',
          name: 'USB 3 modem',
          speed: 'super',
          state: 'available',
          problems: [],
        },
      ] as never);
    const host = await startWebHost({ engine, rendererFolder: join(folder, name) });
    hosts.push(host);
    return host;
  }

  test('shows what the engine says, and nothing runs against the policy', async () => {
    const host = await start('built');
    const page = await browser.newPage();
    const seen = await watch(page);
    await page.goto(host.url);
    await page.getByText('USB 3 modem').waitFor({ timeout: 10_000 });
    const colour = await page.locator('p').evaluate((element) => getComputedStyle(element).color);
    expect(colour).toBe('rgb(1, 2, 3)');
    expect(await page.evaluate(() => globalThis.crossOriginIsolated)).toBe(true);
    expect(seen).toEqual({ messages: [], violations: [] });
    await page.close();
  });

  test('comes in by a one-time address and keeps the token out of what it sends', async () => {
    const host = await start('built');
    const page = await browser.newPage();
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await page.goto(host.oneTimeUrl());
    await page.getByText('USB 3 modem').waitFor({ timeout: 10_000 });
    expect(page.url()).toBe(host.url);
    const token = new URL(host.url).hash.slice('#token='.length);
    expect(urls.length).toBeGreaterThan(2);
    // A fragment is the browser's own; what goes over the wire is the rest.
    expect(urls.map((url) => url.split('#')[0]).join(' ')).not.toContain(token);
    await page.close();
  });

  test('without the token gets the page, but not the engine', async () => {
    const host = await start('built');
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${host.port}/`);
    await page.getByText('closed: engine-gone').waitFor({ timeout: 10_000 });
    expect(engine.subscriptions.size).toBe(0);
    await page.close();
  });

  test('from another origin gets neither the engine nor the page, even with the token', async () => {
    const host = await start('built');
    const token = new URL(host.url).hash.slice('#token='.length);
    // Any page on this machine, without a policy of its own.
    const other = createServer((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' });
      response.end('<!doctype html><title>other</title>');
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    const outcome = await page.evaluate(
      ([port, secret]) =>
        new Promise((resolve) => {
          const socket = new WebSocket(`ws://127.0.0.1:${port}/engine`, ['queuescope', `token.${secret}`]);
          socket.addEventListener('open', () => resolve('open'));
          socket.addEventListener('error', () => resolve('refused'));
        }),
      [String(host.port), token],
    );
    expect(outcome).toBe('refused');
    const read = await page.evaluate(
      (port) =>
        fetch(`http://127.0.0.1:${port}/`).then(
          () => 'read',
          () => 'refused',
        ),
      host.port,
    );
    expect(read).toBe('refused');
    expect(host.clients.length).toBe(0);
    await page.close();
    other.closeAllConnections();
    other.close();
  });

  test('runs no inline script, handler or style and reaches no other origin', async () => {
    const host = await start('hostile');
    const page = await browser.newPage();
    const seen = await watch(page);
    await page.goto(host.url);
    await expect
      .poll(() => [...new Set(seen.violations)].sort())
      .toEqual([
        'base-uri',
        'frame-src',
        'img-src',
        'script-src-attr',
        'script-src-elem',
        'style-src-attr',
        'style-src-elem',
      ]);
    expect(await page.title()).toBe('untouched');
    expect(await page.locator('body').evaluate((body) => getComputedStyle(body).margin)).not.toBe('77px');
    await page.close();
  });
});
