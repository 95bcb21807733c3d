import { type ReadonlySignal, signal } from '@preact/signals';
import type { AppError } from '../src/base/errors.ts';
import { EngineClient } from '../src/rpc/client.ts';
import { portOfPageMessagePort } from '../src/rpc/page-message-port.ts';
import { portOfPageWebSocket } from '../src/rpc/page-web-socket-port.ts';
import type { Port } from '../src/rpc/port.ts';
import type { Schedule } from '../src/rpc/schedule.ts';
import { engineSocketPath, subprotocolsOfToken, tokenOfFragment } from '../src/rpc/web-handshake.ts';
import {
  enginePortMessage,
  type EngineProcessStatus,
  type WindowBridge,
  windowBridgeName,
} from '../src/rpc/window-bridge.ts';
import type { EngineLink, LinkState } from './engine-link.ts';

/** The link that fits the place the page runs in: a window of the app, or a browser. */
export function createEngineLink(): EngineLink {
  const bridge = (window as unknown as Readonly<Record<string, WindowBridge | undefined>>)[windowBridgeName];
  if (bridge !== undefined) return new BridgeLink(bridge);
  const token = takeToken();
  return token === undefined ? keylessLink() : new WebSocketLink(token);
}

const timers: Schedule = (delayUs, action) => {
  const timer = setTimeout(action, delayUs / 1000);
  return () => clearTimeout(timer);
};

const tokenKey = 'queuescope.token';

/** The key to the engine: from the address, where nobody shall see it for long, or from before a reload. */
function takeToken(): string | undefined {
  const token = tokenOfFragment(location.hash);
  if (token === undefined) return sessionStorage.getItem(tokenKey) ?? undefined;
  sessionStorage.setItem(tokenKey, token);
  history.replaceState(null, '', location.pathname + location.search);
  return token;
}

function keylessLink(): EngineLink {
  const state = signal<LinkState>({
    phase: 'gone',
    reason:
      'This address has no key to the engine. Open the whole address that Queuescope printed when it started, with everything behind the #.',
    retryAtMs: undefined,
  });
  return { state, problem: signal(undefined), retry: () => location.reload() };
}

/** One client after the other, over ports of any kind. */
class Clients {
  readonly #state = signal<LinkState>({ phase: 'connecting' });
  readonly state: ReadonlySignal<LinkState> = this.#state;
  readonly problem = signal<AppError | undefined>(undefined);
  #client: EngineClient | undefined;

  /** @param onGone told once the client is of no more use, and whether it had ever been of any */
  use(port: Port, onGone: (reason: AppError, wasOpen: boolean) => void): void {
    this.drop();
    const client = new EngineClient(port, { schedule: timers });
    this.#client = client;
    let wasOpen = false;
    client.ready.then(
      () => {
        if (this.#client !== client) return;
        wasOpen = true;
        this.#state.value = { phase: 'open', api: client };
      },
      // Then it closed, which is told below.
      () => undefined,
    );
    client.onClose((reason) => {
      if (this.#client !== client) return;
      this.#client = undefined;
      onGone(reason, wasOpen);
    });
    client.onProblem((problem) => {
      this.problem.value = problem;
    });
  }

  /** Lets go of the client that is in use. */
  drop(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.close();
  }

  gone(reason: string, retryAtMs: number | undefined): void {
    this.#state.value = { phase: 'gone', reason, retryAtMs };
  }
}

const firstDelayMs = 500;
const longestDelayMs = 10_000;

/** A browser page: a socket to the host that it came from, opened anew with growing pauses when it breaks. */
class WebSocketLink implements EngineLink {
  readonly #clients = new Clients();
  readonly state = this.#clients.state;
  readonly problem = this.#clients.problem;
  readonly #token: string;
  #delayMs = firstDelayMs;
  #timer: number | undefined;

  constructor(token: string) {
    this.#token = token;
    this.#connect();
  }

  retry(): void {
    window.clearTimeout(this.#timer);
    this.#connect();
  }

  #connect(): void {
    const url = `ws://${location.host}${engineSocketPath}`;
    const socket = new WebSocket(url, subprotocolsOfToken(this.#token));
    this.#clients.use(portOfPageWebSocket(socket), (reason, wasOpen) => {
      if (wasOpen) this.#delayMs = firstDelayMs;
      if (reason.kind === 'usage') {
        this.#clients.gone(withRemedy(reason), undefined);
        return;
      }
      const delayMs = this.#delayMs;
      this.#delayMs = Math.min(longestDelayMs, delayMs * 2);
      this.#clients.gone(
        wasOpen
          ? 'The connection to the engine broke. What it records goes on as long as it runs.'
          : 'The engine does not answer at this address. If it was started again, open the new address that it printed.',
        performance.now() + delayMs,
      );
      this.#timer = window.setTimeout(() => this.#connect(), delayMs);
    });
  }
}

/** A window of the app: the shell starts the engine, restarts it, and hands over ports to it. */
class BridgeLink implements EngineLink {
  readonly #clients = new Clients();
  readonly state = this.#clients.state;
  readonly problem = this.#clients.problem;
  readonly #bridge: WindowBridge;

  constructor(bridge: WindowBridge) {
    this.#bridge = bridge;
    window.addEventListener('message', (event) => {
      const [channelEnd] = event.ports;
      if (event.source !== window || event.data !== enginePortMessage || channelEnd === undefined) return;
      this.#clients.use(portOfPageMessagePort(channelEnd), (reason) => {
        this.#clients.gone(withRemedy(reason), undefined);
      });
    });
    bridge.onEngineStatus((status) => this.#handleStatus(status));
    bridge.connect();
  }

  retry(): void {
    this.#bridge.connect();
  }

  #handleStatus({ state, reason }: EngineProcessStatus): void {
    switch (state) {
      case 'running':
        if (this.state.peek().phase === 'gone') this.#bridge.connect();
        break;
      case 'restarting':
        this.#clients.drop();
        this.#clients.gone(`${reason} It is being started again.`, undefined);
        break;
      case 'failed':
        this.#clients.drop();
        this.#clients.gone(`${reason} Start Queuescope again.`, undefined);
        break;
    }
  }
}

function withRemedy(error: AppError): string {
  const message = error.message.charAt(0).toUpperCase() + error.message.slice(1);
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  return error.remedy === undefined ? sentence : `${sentence} ${error.remedy}`;
}
