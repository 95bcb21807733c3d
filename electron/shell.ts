import type { BrowserWindow, IpcMainEvent, WebContents } from 'electron';
import type { Log } from '../src/base/log.ts';
import { StaticFiles } from '../src/hosts/web/static-files.ts';
import type { Schedule } from '../src/rpc/schedule.ts';
import { isAppUrl, registerAppScheme, serveAppScheme } from './app-protocol.ts';
import type { ElectronApi } from './electron-api.ts';
import { EngineSupervisor } from './engine-supervisor.ts';
import { lockContents, lockSession } from './lockdown.ts';
import { menuTemplate } from './menu.ts';
import { connectChannel, portChannel, statusChannel } from './process-messages.ts';
import { createWindow } from './window.ts';

export interface ShellOptions {
  readonly electron: ElectronApi;
  /** The built preload script. */
  readonly preload: string;
  /** The built page. */
  readonly rendererFolder: string;
  /** The built entry of the engine's process. */
  readonly engineScript: string;
  readonly platform: NodeJS.Platform;
  readonly schedule: Schedule;
  readonly log: Log;
}

/**
 * The app in a window of its own: one instance, one window, one engine in a process of its own.
 * What has to be done before Electron is ready happens before this function first waits.
 */
export async function runShell(options: ShellOptions): Promise<void> {
  const { electron, schedule, log } = options;
  const { app } = electron;
  app.setName('Queuescope');
  app.enableSandbox();
  registerAppScheme(electron.protocol);
  if (!app.requestSingleInstanceLock()) {
    app.quit();
    return;
  }

  const supervisor = new EngineSupervisor({ electron, script: options.engineScript, schedule, log });
  let window: BrowserWindow | undefined;
  /** A page that asked for the engine when there was none. */
  let waiting: WebContents | undefined;

  const openWindow = (): void => {
    const opened = createWindow(electron, options.preload);
    window = opened;
    opened.on('closed', () => {
      if (window === opened) window = undefined;
    });
  };
  const connect = (contents: WebContents): void => {
    const port = supervisor.connect();
    waiting = port === undefined ? contents : undefined;
    if (port !== undefined) contents.postMessage(portChannel, null, [port]);
  };

  app.on('web-contents-created', (_event, contents) => lockContents(contents));
  app.on('second-instance', () => {
    if (window === undefined) return;
    if (window.isMinimized()) window.restore();
    window.focus();
  });
  app.on('window-all-closed', () => app.quit());

  let closed = false;
  app.on('will-quit', (event) => {
    if (closed) return;
    // The window is gone already; the devices have to be given back first.
    event.preventDefault();
    void supervisor.close().then(() => {
      closed = true;
      app.quit();
    });
  });

  electron.ipcMain.on(connectChannel, (event) => {
    if (isOwnPage(event)) connect(event.sender);
  });
  electron.ipcMain.on(statusChannel, (event) => {
    if (isOwnPage(event)) event.sender.send(statusChannel, supervisor.status);
  });
  supervisor.onStatus((status) => {
    if (window === undefined || window.isDestroyed()) return;
    window.webContents.send(statusChannel, status);
    if (status.state === 'running' && waiting !== undefined && !waiting.isDestroyed()) connect(waiting);
  });

  await app.whenReady();
  lockSession(electron.session.defaultSession);
  serveAppScheme(electron.session.defaultSession.protocol, new StaticFiles(options.rendererFolder));
  electron.Menu.setApplicationMenu(electron.Menu.buildFromTemplate(menuTemplate(options.platform)));
  electron.powerMonitor.on('suspend', () => supervisor.handlePower('suspend'));
  electron.powerMonitor.on('resume', () => supervisor.handlePower('resume'));
  supervisor.start();
  openWindow();
  app.on('activate', () => {
    if (window === undefined) openWindow();
  });
}

/** Only the page itself, not a frame in it, and only while it is our page. */
function isOwnPage({ senderFrame }: IpcMainEvent): boolean {
  return senderFrame !== null && senderFrame.parent === null && isAppUrl(senderFrame.url);
}
