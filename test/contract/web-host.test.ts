import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { Log } from '../../src/base/log.ts';
import { probeColumns, sampleColumns, type TelemetryBatch } from '../../src/contract/telemetry.ts';
import { contractVersion } from '../../src/contract/version.ts';
import { startWebHost, type WebHost, type WebHostOptions } from '../../src/hosts/web/web-host.ts';
import { timerSchedule } from '../../src/hosts/web/timer-schedule.ts';
import { EngineClient } from '../../src/rpc/client.ts';
import { portOfPageWebSocket } from '../../src/rpc/page-web-socket-port.ts';
import { subprotocolsOfToken, tokenOfFragment } from '../../src/rpc/web-handshake.ts';
import { ManualSchedule } from '../harness/manual-schedule.ts';
import { StubEngine } from '../harness/stub-engine.ts';

let folder: string;
let engine: StubEngine;
let lines: string[];
const hosts: WebHost[] = [];
const sockets: (WebSocket | Socket)[] = [];

const log: Log = {
  log: (_level, message, fields) => void lines.push(`${message} ${JSON.stringify(fields ?? {})}`),
};

async function start(options: Partial<WebHostOptions> = {}): Promise<WebHost> {
  const host = await startWebHost({ engine, rendererFolder: join(folder, 'renderer'), log, ...options });
  hosts.push(host);
  return host;
}

beforeEach(async () => {
  engine = new StubEngine();
  lines = [];
  folder = await mkdtemp(join(tmpdir(), 'queuescope-web-'));
  await mkdir(join(folder, 'renderer', 'assets'), { recursive: true });
  await mkdir(join(folder, 'renderer-private'));
  await writeFile(join(folder, 'secret.html'), 'secret');
  await writeFile(join(folder, 'renderer-private', 'secret.html'), 'secret');
  await writeFile(join(folder, 'renderer', 'index.html'), '<!doctype html><title>page</title>');
  await writeFile(join(folder, 'renderer', '.hidden.html'), 'secret');
  await writeFile(join(folder, 'renderer', 'program.sh'), 'secret');
  await writeFile(join(folder, 'renderer', 'assets', 'main-1a2b.js'), 'export {};');
  await symlink(join(folder, 'secret.html'), join(folder, 'renderer', 'link.html'));
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) {
    if (socket instanceof WebSocket) socket.terminate();
    else socket.destroy();
  }
  await Promise.all(hosts.splice(0).map((host) => host.close()));
  await rm(folder, { recursive: true });
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request whose path goes out as it is written, which `fetch` does not do. */
function send(
  host: WebHost,
  path: string,
  method = 'GET',
  headers: OutgoingHttpHeaders = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: host.port, path, method, headers };
    request(options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    })
      .on('error', reject)
      .end();
  });
}

function tokenOf(host: WebHost): string {
  const token = tokenOfFragment(new URL(host.url).hash);
  if (token === undefined) throw new Error('the address has no token');
  return token;
}

interface SocketOptions {
  readonly path?: string;
  readonly subprotocols?: string[];
  readonly headers?: Record<string, string>;
  readonly origin?: string | undefined;
}

function openSocket(host: WebHost, options: SocketOptions = {}): WebSocket {
  const subprotocols = options.subprotocols ?? subprotocolsOfToken(tokenOf(host));
  const origin = 'origin' in options ? options.origin : `http://127.0.0.1:${host.port}`;
  const socket = new WebSocket(`ws://127.0.0.1:${host.port}${options.path ?? '/engine'}`, subprotocols, {
    headers: { ...options.headers },
    ...(origin === undefined ? {} : { origin }),
  });
  sockets.push(socket);
  return socket;
}

/** How a socket's opening ends: open, or the status of the refusal. */
function outcome(socket: WebSocket): Promise<'open' | number | undefined> {
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve('open'));
    socket.on('unexpected-response', (_request, response) => {
      response.resume();
      resolve(response.statusCode);
    });
    socket.on('error', reject);
  });
}

function closeCode(socket: WebSocket): Promise<number> {
  return new Promise((resolve) => socket.on('close', (code) => resolve(code)));
}

describe('the page', () => {
  test('is served with all that keeps it to itself', async () => {
    const host = await start();
    const { status, headers, body } = await send(host, '/');
    expect(status).toBe(200);
    expect(body).toContain('<title>page</title>');
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('usb=()') as unknown,
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
        `connect-src 'self' ws://127.0.0.1:${host.port}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
    expect(headers['set-cookie']).toBeUndefined();
  });

  test('under its other name may open a socket under that name', async () => {
    const host = await start();
    const { headers } = await send(host, '/', 'GET', { host: `localhost:${host.port}` });
    expect(headers['content-security-policy']).toContain(`connect-src 'self' ws://localhost:${host.port};`);
  });

  test('files named by their content may be kept, and HEAD has no body', async () => {
    const host = await start();
    const { status, headers, body } = await send(host, '/assets/main-1a2b.js?v=1', 'HEAD');
    expect([status, body, headers['content-length']]).toEqual([200, '', '10']);
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect(headers['cache-control']).toContain('immutable');
  });

  test.each([
    '/../secret.html',
    '/assets/../../secret.html',
    '/%2e%2e/secret.html',
    '/..%2fsecret.html',
    '/%2e%2e%2fsecret.html',
    '/..%5csecret.html',
    '/../renderer-private/secret.html',
    '//secret.html/../../secret.html',
    '/link.html',
    '/.hidden.html',
    '/program.sh',
    '/assets',
    '/assets/',
    '/index.html/',
    '/index.html%00.js',
    '/missing.js',
    '/C:/secret.html',
    '/%zz.html',
    '*',
  ])('%s is not there', async (path) => {
    const host = await start();
    const { status, headers, body } = await send(host, path);
    expect([400, 404]).toContain(status);
    expect(body).not.toContain('secret');
    expect(headers['content-security-policy']).toContain("default-src 'none'");
  });

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'])('%s is refused', async (method) => {
    const host = await start();
    const { status, headers } = await send(host, '/', method);
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  test.each([
    'evil.example',
    '127.0.0.1',
    'localhost',
    '127.0.0.1:1',
    '127.0.0.1.evil.example:80',
    '[::1]:80',
  ])('a request to %s is not for us', async (name) => {
    const host = await start();
    const { status, body } = await send(host, '/', 'GET', { host: name });
    expect(status).toBe(421);
    expect(body).not.toContain('<title>');
  });

  test('that is not built says so, and how to build it', async () => {
    const host = await start({ rendererFolder: join(folder, 'nothing') });
    const { status, headers, body } = await send(host, '/');
    expect(status).toBe(503);
    expect(headers['content-type']).toContain('text/html');
    expect(body).toContain('npm run build');
    expect(body).not.toMatch(/<script|<style|style=/);
  });

  test('opens by a one-time address that leads to the token, and is spent then', async () => {
    const host = await start();
    const url = host.oneTimeUrl();
    expect(url).not.toContain(tokenOf(host));
    const first = await send(host, new URL(url).pathname);
    expect([first.status, first.headers.location]).toEqual([302, `/#token=${tokenOf(host)}`]);
    expect(first.headers['cache-control']).toBe('no-store');
    for (const path of [new URL(url).pathname, '/open/', `/open/${'A'.repeat(43)}`]) {
      const { status, headers, body } = await send(host, path);
      expect([status, headers.location]).toEqual([410, undefined]);
      expect(body).not.toContain(tokenOf(host));
    }
  });

  test('has one-time addresses for a minute only', async () => {
    const time = new ManualSchedule();
    const host = await start({ schedule: time.schedule });
    const path = new URL(host.oneTimeUrl()).pathname;
    time.advance(60_000_000);
    expect((await send(host, path)).status).toBe(410);
  });

  test('a port that is taken is an error with a remedy', async () => {
    const host = await start();
    await expect(start({ port: host.port })).rejects.toMatchObject({
      kind: 'usage',
      details: { port: host.port },
      remedy: expect.stringContaining('another port') as unknown,
    });
  });

  test('listens on this machine only, and each run has another token', async () => {
    const host = await start();
    const other = await start();
    expect(tokenOf(host)).not.toBe(tokenOf(other));
    expect(Buffer.from(tokenOf(host), 'base64url').length).toBe(32);
    await expect(
      new Promise((resolve, reject) => {
        const socket = connect({ host: '127.0.0.2', port: host.port }, () => resolve('connected'));
        socket.on('error', reject);
        sockets.push(socket);
      }),
    ).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('the socket', () => {
  test('opens for our own page with the token, and never repeats the token', async () => {
    const host = await start();
    const socket = openSocket(host);
    await expect(outcome(socket)).resolves.toBe('open');
    expect(socket.protocol).toBe('queuescope');
    expect(socket.extensions).toBe('');
    await vi.waitFor(() => expect(host.clients.length).toBe(1));
  });

  test('opens under the other name too', async () => {
    const host = await start();
    const name = `localhost:${host.port}`;
    await expect(
      outcome(openSocket(host, { headers: { host: name }, origin: `http://${name}` })),
    ).resolves.toBe('open');
  });

  const wrong = 'A'.repeat(43);
  test.each<[string, number, (host: WebHost) => SocketOptions]>([
    ['a wrong token', 403, () => ({ subprotocols: subprotocolsOfToken(wrong) })],
    ['no token', 403, () => ({ subprotocols: ['queuescope'] })],
    ['an empty token', 403, () => ({ subprotocols: ['queuescope', 'token.'] })],
    [
      'two tokens',
      403,
      (host) => ({ subprotocols: [...subprotocolsOfToken(tokenOf(host)), `token.${wrong}`] }),
    ],
    ['no sub-protocol at all', 403, () => ({ subprotocols: [] })],
    [
      'the token in the address',
      403,
      (host) => ({ subprotocols: [], path: `/engine?token=${tokenOf(host)}` }),
    ],
    ['a foreign origin', 403, () => ({ origin: 'http://evil.example' })],
    ['the origin of another port', 403, () => ({ origin: 'http://127.0.0.1:1' })],
    ['the origin under another scheme', 403, (host) => ({ origin: `https://127.0.0.1:${host.port}` })],
    [
      'an origin that only begins like ours',
      403,
      (host) => ({ origin: `http://127.0.0.1:${host.port}.evil.example` }),
    ],
    ['the origin of our other name', 403, (host) => ({ origin: `http://localhost:${host.port}` })],
    ['an opaque origin', 403, () => ({ origin: 'null' })],
    ['no origin', 403, () => ({ origin: undefined })],
    ['a foreign host', 421, () => ({ headers: { host: 'evil.example' } })],
    ['another path', 404, () => ({ path: '/' })],
  ])('%s: refused, and the engine is not asked', async (_name, status, options) => {
    const host = await start();
    const refused = await outcome(openSocket(host, options(host)));
    expect([status, 404]).toContain(refused);
    expect(refused).not.toBe('open');
    expect(host.clients.length).toBe(0);
    expect(engine.calls).toEqual([]);
  });

  test('the token never comes to a log', async () => {
    const host = await start();
    await outcome(openSocket(host, { subprotocols: subprotocolsOfToken(wrong) }));
    const socket = openSocket(host);
    await outcome(socket);
    socket.send('nonsense');
    await closeCode(socket);
    await vi.waitFor(() => expect(lines.join('\n')).toContain('page gone'));
    expect(lines.join('\n')).not.toContain(tokenOf(host));
    expect(lines.join('\n')).not.toContain(wrong);
  });

  test('no more pages at once than allowed', async () => {
    const host = await start({ maxClients: 1 });
    const first = openSocket(host);
    await outcome(first);
    await expect(outcome(openSocket(host))).resolves.toBe(503);
    first.close();
    await closeCode(first);
    await vi.waitFor(() => expect(host.clients.length).toBe(0));
    await expect(outcome(openSocket(host))).resolves.toBe('open');
  });

  test('a message that is too large ends that connection, as too large', async () => {
    const host = await start();
    const socket = openSocket(host);
    await outcome(socket);
    const code = closeCode(socket);
    socket.send('x'.repeat(3 * 1024 * 1024 + 1));
    await expect(code).resolves.toBe(1009);
    await vi.waitFor(() => expect(host.clients.length).toBe(0));
  });

  test('what is no message is refused with a reason before the connection ends', async () => {
    const host = await start();
    const socket = openSocket(host);
    await outcome(socket);
    const received: string[] = [];
    socket.on('message', (data: Buffer) => received.push(data.toString()));
    const code = closeCode(socket);
    socket.send(JSON.stringify({ type: 'hello', contractVersion: contractVersion + 1 }));
    await expect(code).resolves.toBe(1000);
    expect(received.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { type: 'refused', error: { kind: 'usage' } },
    ]);
  });

  test('a page that answers no ping is let go', async () => {
    const host = await start({ pingIntervalMs: 30 });
    const silent = new WebSocket(`ws://127.0.0.1:${host.port}/engine`, subprotocolsOfToken(tokenOf(host)), {
      origin: `http://127.0.0.1:${host.port}`,
      autoPong: false,
    });
    sockets.push(silent);
    const answering = openSocket(host);
    await Promise.all([outcome(silent), outcome(answering)]);
    await expect(closeCode(silent)).resolves.toBe(1006);
    await vi.waitFor(() => expect(host.clients.length).toBe(1));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(answering.readyState).toBe(WebSocket.OPEN);
  });

  test('the end of the host tells pages that it goes away, and takes no longer than they let it', async () => {
    const host = await start();
    const socket = openSocket(host);
    await outcome(socket);
    const code = closeCode(socket);
    await host.close();
    await expect(code).resolves.toBe(1001);
    await expect(send(host, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('an engine behind the socket', () => {
  async function connectClient(host: WebHost): Promise<{ client: EngineClient; socket: WebSocket }> {
    const socket = openSocket(host);
    // As a page does: the client starts before the socket is open.
    const client = new EngineClient(portOfPageWebSocket(socket), { schedule: timerSchedule });
    await client.ready;
    return { client, socket };
  }

  test('answers calls, sends states and rows, and is gone for the client when the host ends', async () => {
    const host = await start();
    const { client } = await connectClient(host);
    expect(await client.call('devices.list', {})).toEqual([]);

    engine.onSubscribe = (_topic, sendValue) => sendValue([] as never);
    const states = await new Promise((resolve) => client.subscribe('devices', {}, resolve));
    expect(states).toEqual([]);

    const columns = sampleColumns.length;
    const values = Float64Array.from({ length: 3 * columns }, (_, index) => index * 1.5);
    values[4] = Number.NaN;
    engine.onSubscribeTelemetry = ({ push }) => void push({ table: 'samples', values, skippedRows: 2 });
    const batch = await new Promise<TelemetryBatch>((resolve) =>
      client.subscribeTelemetry({ sessionId: 's', table: 'samples', historySeconds: 1 }, resolve),
    );
    expect(batch).toEqual({ table: 'samples', values, skippedRows: 2 });

    engine.answer('session.stop', () => new Promise(() => {}));
    const outstanding = client.call('session.stop', { sessionId: 's' });
    const closed = new Promise((resolve) => client.onClose(resolve));
    await host.close();
    await expect(outstanding).rejects.toMatchObject({ kind: 'engine-gone' });
    await expect(closed).resolves.toMatchObject({ kind: 'engine-gone' });
    await vi.waitFor(() => expect(engine.subscriptions.size + engine.telemetry.size).toBe(0));
  });

  test('holds no more for a page that stops reading than it is allowed to, and tells it what it missed', async () => {
    const limits = {
      maxHeldRows: 500,
      maxRowsPerMessage: 100,
      highWaterBytes: 64 * 1024,
      creditMessages: 1000,
    };
    const host = await start({ limits });
    const { client, socket } = await connectClient(host);
    const columns = probeColumns.length;
    let received = 0;
    let skipped = 0;
    let next = 0;
    client.subscribeTelemetry({ sessionId: 's', table: 'probes', historySeconds: 0 }, (batch) => {
      skipped += batch.skippedRows;
      next += batch.skippedRows;
      for (let offset = 0; offset < batch.values.length; offset += columns) {
        expect(batch.values[offset]).toBe(next++);
        received++;
      }
    });
    await vi.waitFor(() => expect(engine.telemetry.size).toBe(1));
    const [subscription] = engine.telemetry;

    socket.pause();
    const rows = 100;
    let sent = 0;
    let mostBuffered = 0;
    let mostHeld = 0;
    // 24 MB: more than the kernel's buffers of both ends take.
    for (let n = 0; n < 5000; n++) {
      const values = Float64Array.from(
        { length: rows * columns },
        (_, index) => sent + Math.floor(index / columns),
      );
      void subscription?.push({ table: 'probes', values, skippedRows: 0 });
      sent += rows;
      mostBuffered = Math.max(mostBuffered, ...host.clients.map(({ bufferedBytes }) => bufferedBytes));
      mostHeld = Math.max(mostHeld, ...host.clients.map(({ heldRows }) => heldRows));
      if (n % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(mostBuffered).toBeGreaterThan(64 * 1024);
    expect(mostBuffered).toBeLessThan(64 * 1024 + 2 * rows * columns * 8);
    expect(mostHeld).toBe(500);

    socket.resume();
    await vi.waitFor(() => expect(received + skipped).toBe(sent), { timeout: 5000 });
    expect(skipped).toBeGreaterThan(0);
    expect(received).toBeGreaterThanOrEqual(500);
    expect(host.clients.map(({ heldRows }) => heldRows)).toEqual([0]);
    expect(client.closedBy).toBeUndefined();
  });
});
