import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Dispose } from '../../base/emitter.ts';
import { AppError } from '../../base/errors.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { EngineApi } from '../../contract/engine-api.ts';
import { maxRequestChars } from '../../rpc/messages.ts';
import type { Schedule } from '../../rpc/schedule.ts';
import { EngineServer, type ServerLimits } from '../../rpc/server.ts';
import { engineSocketPath, engineSubprotocol, fragmentOfToken } from '../../rpc/web-handshake.ts';
import { createToken, hasToken, isOwnOrigin, ownHostOf } from './access.ts';
import { securityHeaders } from './content-security-policy.ts';
import { StaticFiles } from './static-files.ts';
import { every, timerSchedule } from './timer-schedule.ts';
import { WebSocketPort } from './websocket-port.ts';

export interface WebHostOptions {
  readonly engine: EngineApi;
  /** Where the built page is. */
  readonly rendererFolder: string;
  /** TCP port on 127.0.0.1; without one, any that is free. */
  readonly port?: number;
  readonly log?: Log;
  readonly schedule?: Schedule;
  /** What one client can make the host hold. */
  readonly limits?: Partial<ServerLimits>;
  /** Pages with a socket at the same time. */
  readonly maxClients?: number;
  /** A client that does not answer a ping before the next one is due is gone. */
  readonly pingIntervalMs?: number;
}

interface WebClientStatus {
  /** Bytes that the operating system has not taken yet. */
  readonly bufferedBytes: number;
  /** Telemetry rows that wait for the client. */
  readonly heldRows: number;
}

export interface WebHost {
  /** With the token in its fragment: whoever has it has the engine. Not for logs. */
  readonly url: string;
  readonly port: number;
  readonly clients: readonly WebClientStatus[];
  /**
   * An address that leads to {@link url} once, within a minute. For handing to a program that opens the browser: what
   * stands in the arguments of a process can be read by everybody on the machine.
   */
  oneTimeUrl(): string;
  close(): Promise<void>;
}

/** RFC 6455 section 7.4.1. */
const closeGoingAway = 1001;

/** How long a client may take to answer the end of its connection. */
const closeTimeoutMs = 2_000;

/** Where {@link WebHost.oneTimeUrl} leads to. */
const openingPrefix = '/open/';
const openingLifetimeUs = 60_000_000;

/** UTF-8 takes up to 3 bytes for what a string counts as one. */
const maxPayloadBytes = maxRequestChars * 3;

const maxConnections = 64;

/**
 * The browser host: the page and one socket to the engine, on 127.0.0.1 only.
 *
 * Who may use it: every request has to name this host exactly (against DNS rebinding), a socket also has to come from
 * our own page (against other pages in the same browser) and bring the token of this run (against other users and
 * programs of this machine). The page itself holds nothing secret and is served without the token.
 *
 * @throws AppError `usage` if the port is taken or not allowed
 */
export async function startWebHost(options: WebHostOptions): Promise<WebHost> {
  const server = createServer({
    maxHeaderSize: 8192,
    headersTimeout: 10_000,
    requestTimeout: 10_000,
    keepAliveTimeout: 5_000,
  });
  server.maxConnections = maxConnections;
  const port = await listen(server, options.port ?? 0);
  const token = createToken();
  const host = new Host(server, port, token, options);
  return {
    url: `http://127.0.0.1:${port}/${fragmentOfToken(token)}`,
    port,
    get clients() {
      return host.clients;
    },
    oneTimeUrl: () => `http://127.0.0.1:${port}${host.createOpening()}`,
    close: () => host.close(),
  };
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (cause) {
    throw new AppError('usage', `port ${port} of 127.0.0.1 cannot be used`, {
      details: { port },
      remedy: 'Name another port, or none: then any free one is taken.',
      cause,
    });
  }
  return (server.address() as AddressInfo).port;
}

interface Client {
  readonly socket: WebSocket;
  readonly server: EngineServer;
  alive: boolean;
}

class Host {
  readonly #server: Server;
  readonly #port: number;
  readonly #token: string;
  readonly #engine: EngineApi;
  readonly #files: StaticFiles;
  readonly #log: Log;
  readonly #schedule: Schedule;
  readonly #limits: Partial<ServerLimits>;
  readonly #maxClients: number;
  readonly #sockets: WebSocketServer;
  readonly #clients = new Set<Client>();
  /** Paths that lead to the page with its token, each once; with what ends their time. */
  readonly #openings = new Map<string, Dispose>();
  readonly #stopPinging: () => void;

  constructor(server: Server, port: number, token: string, options: WebHostOptions) {
    this.#server = server;
    this.#port = port;
    this.#token = token;
    this.#engine = options.engine;
    this.#files = new StaticFiles(options.rendererFolder);
    this.#log = options.log ?? silentLog;
    this.#schedule = options.schedule ?? timerSchedule;
    this.#limits = options.limits ?? {};
    this.#maxClients = options.maxClients ?? 16;
    this.#sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: maxPayloadBytes,
      // Never the token, which is the other one on offer.
      handleProtocols: (offered) => (offered.has(engineSubprotocol) ? engineSubprotocol : false),
    });
    this.#stopPinging = every(options.pingIntervalMs ?? 15_000, () => this.#ping());
    server.on('request', (request, response) => void this.#handleRequest(request, response));
    server.on('upgrade', (request, socket, head) => this.#handleUpgrade(request, socket, head));
  }

  get clients(): WebClientStatus[] {
    return [...this.#clients].map(({ socket, server }) => ({
      bufferedBytes: socket.bufferedAmount,
      heldRows: server.heldRows,
    }));
  }

  /** A path that leads to the page with its token, once and for a minute. */
  createOpening(): string {
    const path = `${openingPrefix}${createToken()}`;
    this.#openings.set(
      path,
      this.#schedule(openingLifetimeUs, () => this.#openings.delete(path)),
    );
    return path;
  }

  async close(): Promise<void> {
    for (const cancel of this.#openings.values()) cancel();
    this.#openings.clear();
    this.#stopPinging();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const { socket } of this.#clients) socket.close(closeGoingAway, 'the engine stops');
    this.#server.closeIdleConnections();
    const terminate = setTimeout(() => {
      for (const { socket } of this.#clients) socket.terminate();
      this.#server.closeAllConnections();
    }, closeTimeoutMs);
    await closed;
    clearTimeout(terminate);
  }

  async #handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const host = ownHostOf(request, this.#port);
    const headers = securityHeaders(host === undefined ? [] : [`ws://${host}`]);
    if (host === undefined) {
      respond(response, 421, headers, 'This server answers to its own name only.');
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      respond(response, 405, { ...headers, Allow: 'GET, HEAD' }, 'Only GET and HEAD.');
      return;
    }
    if (request.url?.startsWith(openingPrefix)) {
      this.#handleOpening(request.url, response, headers);
      return;
    }
    const answer = await this.#files.answer(request.url ?? '/');
    response.writeHead(answer.status, {
      ...headers,
      'Content-Type': answer.mediaType,
      'Content-Length': answer.body.byteLength,
      'Cache-Control': answer.cacheControl,
    });
    response.end(request.method === 'HEAD' ? undefined : answer.body);
  }

  #handleOpening(path: string, response: ServerResponse, headers: Readonly<Record<string, string>>): void {
    const cancel = this.#openings.get(path);
    if (cancel === undefined) {
      respond(response, 410, headers, 'This address has been used. Take the one that Queuescope printed.');
      return;
    }
    cancel();
    this.#openings.delete(path);
    const location = `/${fragmentOfToken(this.#token)}`;
    respond(response, 302, { ...headers, Location: location }, 'Queuescope is elsewhere.');
  }

  #handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until ws takes over, a reset by the client would be nobody's error.
    const ignore = (): void => {};
    socket.on('error', ignore);
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      this.#log.log('warn', 'socket refused', { reason: refusal.reason });
      socket.end(
        `HTTP/1.1 ${refusal.status}\r\nConnection: close\r\nContent-Type: text/plain\r\n` +
          `Content-Length: ${Buffer.byteLength(refusal.reason)}\r\n\r\n${refusal.reason}`,
      );
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      socket.off('error', ignore);
      this.#handleClient(webSocket);
    });
  }

  #refusalOf(request: IncomingMessage): { readonly status: string; readonly reason: string } | undefined {
    const host = ownHostOf(request, this.#port);
    if (host === undefined) return { status: '421 Misdirected Request', reason: 'wrong host' };
    if (request.url !== engineSocketPath) return { status: '404 Not Found', reason: 'no socket here' };
    if (!isOwnOrigin(request, host)) return { status: '403 Forbidden', reason: 'wrong origin' };
    if (!hasToken(request, this.#token)) return { status: '403 Forbidden', reason: 'wrong token' };
    if (this.#clients.size >= this.#maxClients) {
      return { status: '503 Service Unavailable', reason: 'too many pages are open' };
    }
    return undefined;
  }

  #handleClient(socket: WebSocket): void {
    const port = new WebSocketPort(socket);
    const server = new EngineServer(this.#engine, port, {
      schedule: this.#schedule,
      log: this.#log,
      limits: this.#limits,
    });
    const client: Client = { socket, server, alive: true };
    this.#clients.add(client);
    socket.on('pong', () => (client.alive = true));
    socket.on('close', (code) => {
      this.#clients.delete(client);
      this.#log.log('info', 'page gone', { code });
    });
    this.#log.log('info', 'page connected', { clients: this.#clients.size });
  }

  #ping(): void {
    for (const client of this.#clients) {
      if (!client.alive) {
        this.#log.log('warn', 'page does not answer');
        client.socket.terminate();
        continue;
      }
      client.alive = false;
      client.socket.ping();
    }
  }
}

function respond(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  words: string,
): void {
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    Connection: 'close',
  });
  response.end(`${words}\n`);
}
