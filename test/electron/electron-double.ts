import { EventEmitter } from 'node:events';
import type { ElectronApi } from '../../electron/electron-api.ts';
import type { FromEngineProcess, ToEngineProcess } from '../../electron/process-messages.ts';

/** A stand-in for Electron's API as far as the shell uses it, which keeps what it was told and does nothing. */

export class DoubleChannelEnd extends EventEmitter {
  readonly posted: unknown[] = [];
  started = false;
  closed = false;
  /** The other end, when this one is one of a channel. */
  peer: DoubleChannelEnd | undefined;
  postMessage(message: unknown): void {
    this.posted.push(message);
  }
  start(): void {
    this.started = true;
  }
  close(): void {
    this.closed = true;
  }
}

class DoubleChannel {
  readonly port1 = new DoubleChannelEnd();
  readonly port2 = new DoubleChannelEnd();
  constructor() {
    this.port1.peer = this.port2;
    this.port2.peer = this.port1;
  }
}

export class DoubleChild extends EventEmitter {
  readonly script: string;
  readonly options: unknown;
  readonly posted: { readonly message: ToEngineProcess; readonly ports: readonly unknown[] }[] = [];
  killed = false;
  constructor(script: string, options: unknown) {
    super();
    this.script = script;
    this.options = options;
  }
  postMessage(message: ToEngineProcess, ports: readonly unknown[] = []): void {
    this.posted.push({ message, ports });
  }
  kill(): boolean {
    this.killed = true;
    return true;
  }
  /** What the process would say, and its end. */
  say(message: FromEngineProcess): void {
    this.emit('message', message);
  }
  end(code: number): void {
    this.emit('exit', code);
  }
}

export class DoubleContents extends EventEmitter {
  readonly sent: { readonly channel: string; readonly message: unknown }[] = [];
  readonly ports: { readonly channel: string; readonly ports: readonly unknown[] }[] = [];
  openHandler: ((details: { url: string }) => { action: string }) | undefined;
  destroyed = false;
  readonly mainFrame = { parent: null, url: 'app://queuescope/' };
  send(channel: string, message: unknown): void {
    this.sent.push({ channel, message });
  }
  postMessage(channel: string, _message: unknown, ports: readonly unknown[]): void {
    this.ports.push({ channel, ports });
  }
  setWindowOpenHandler(handler: (details: { url: string }) => { action: string }): void {
    this.openHandler = handler;
  }
  isDestroyed(): boolean {
    return this.destroyed;
  }
}

export class DoubleWindow extends EventEmitter {
  readonly options: { readonly webPreferences: Record<string, unknown>; readonly show: boolean };
  readonly webContents = new DoubleContents();
  readonly loaded: string[] = [];
  shown = false;
  minimized = false;
  focused = false;
  constructor(options: DoubleWindow['options']) {
    super();
    this.options = options;
  }
  async loadURL(url: string): Promise<void> {
    this.loaded.push(url);
  }
  show(): void {
    this.shown = true;
  }
  isMinimized(): boolean {
    return this.minimized;
  }
  restore(): void {
    this.minimized = false;
  }
  focus(): void {
    this.focused = true;
  }
  isDestroyed(): boolean {
    return this.webContents.destroyed;
  }
}

type Handler = (...args: never[]) => unknown;

class DoubleSession extends EventEmitter {
  readonly handlers: Record<string, Handler> = {};
  readonly protocol = {
    handle: (scheme: string, handler: Handler): void => void (this.handlers[`protocol ${scheme}`] = handler),
  };
  readonly webRequest = {
    onBeforeRequest: (_filter: unknown, handler: Handler): void => void (this.handlers['request'] = handler),
  };
  setPermissionRequestHandler(handler: Handler): void {
    this.handlers['permission request'] = handler;
  }
  setPermissionCheckHandler(handler: Handler): void {
    this.handlers['permission check'] = handler;
  }
  setDevicePermissionHandler(handler: Handler): void {
    this.handlers['device'] = handler;
  }
  setDisplayMediaRequestHandler(handler: Handler): void {
    this.handlers['display'] = handler;
  }
}

class DoubleApp extends EventEmitter {
  readonly did: string[] = [];
  firstInstance = true;
  ready: () => void = () => {};
  readonly #ready = new Promise<void>((resolve) => (this.ready = resolve));
  setName(): void {}
  enableSandbox(): void {
    this.did.push('sandbox');
  }
  requestSingleInstanceLock(): boolean {
    return this.firstInstance;
  }
  async whenReady(): Promise<void> {
    await this.#ready;
    this.did.push('ready');
  }
  /** As Electron does: asks first, then goes unless somebody objects. */
  quit(): void {
    let prevented = false;
    this.emit('will-quit', { preventDefault: () => (prevented = true) });
    if (!prevented) this.did.push('quit');
  }
}

export class ElectronDouble {
  readonly app = new DoubleApp();
  readonly ipcMain = new EventEmitter();
  readonly powerMonitor = new EventEmitter();
  readonly session = { defaultSession: new DoubleSession() };
  readonly nativeTheme = { shouldUseDarkColors: false };
  readonly schemes: unknown[] = [];
  readonly protocol = {
    registerSchemesAsPrivileged: (schemes: unknown[]): void => {
      this.app.did.push('scheme');
      this.schemes.push(...schemes);
    },
  };
  menu: unknown;
  readonly Menu = {
    buildFromTemplate: (template: unknown): unknown => template,
    setApplicationMenu: (menu: unknown): void => void (this.menu = menu),
  };
  readonly MessageChannelMain = DoubleChannel;
  readonly windows: DoubleWindow[] = [];
  readonly BrowserWindow: new (options: DoubleWindow['options']) => DoubleWindow;
  readonly children: DoubleChild[] = [];
  readonly utilityProcess = {
    fork: (script: string, _args: unknown, options: unknown): DoubleChild => {
      const child = new DoubleChild(script, options);
      this.children.push(child);
      return child;
    },
  };

  constructor() {
    const { windows } = this;
    const { app } = this;
    this.BrowserWindow = class extends DoubleWindow {
      constructor(options: DoubleWindow['options']) {
        super(options);
        windows.push(this);
        app.emit('web-contents-created', {}, this.webContents);
      }
    };
  }

  /** The same under its real type. */
  get api(): ElectronApi {
    return this as unknown as ElectronApi;
  }

  /** The newest engine process. */
  get child(): DoubleChild {
    const child = this.children.at(-1);
    if (child === undefined) throw new Error('no process was started');
    return child;
  }

  /** The newest window. */
  get window(): DoubleWindow {
    const window = this.windows.at(-1);
    if (window === undefined) throw new Error('no window was opened');
    return window;
  }

  /** A message of a page's preload script. */
  send(channel: string, contents: DoubleContents, frame: unknown = contents.mainFrame): void {
    this.ipcMain.emit(channel, { sender: contents, senderFrame: frame });
  }

  /** A handler that the shell gave to the session. */
  handler(name: string): (...args: unknown[]) => unknown {
    const handler = this.session.defaultSession.handlers[name];
    if (handler === undefined) throw new Error(`nothing handles ${name}`);
    return handler as (...args: unknown[]) => unknown;
  }
}
