import type { BrowserWindow } from 'electron';
import { appUrl } from './app-protocol.ts';
import type { ElectronApi } from './electron-api.ts';

/** A page that crashes more often than this is not loaded again. */
const maxReloads = 3;

/** The window, shown once its page has something to show. */
export function createWindow(
  electron: Pick<ElectronApi, 'BrowserWindow' | 'nativeTheme'>,
  preload: string,
): BrowserWindow {
  const window = new electron.BrowserWindow({
    title: 'Queuescope',
    width: 1440,
    height: 900,
    minWidth: 800,
    minHeight: 600,
    show: false,
    backgroundColor: electron.nativeTheme.shouldUseDarkColors ? '#16181d' : '#ffffff',
    webPreferences: {
      preload,
      sandbox: true,
      contextIsolation: true,
      nodeIntegration: false,
      nodeIntegrationInWorker: false,
      nodeIntegrationInSubFrames: false,
      webSecurity: true,
      allowRunningInsecureContent: false,
      experimentalFeatures: false,
      webviewTag: false,
      navigateOnDragDrop: false,
      spellcheck: false,
    },
  });
  window.once('ready-to-show', () => window.show());
  let reloads = 0;
  window.webContents.on('render-process-gone', (_event, { reason }) => {
    if (reason === 'clean-exit' || window.isDestroyed() || reloads === maxReloads) return;
    reloads++;
    void window.loadURL(appUrl);
  });
  void window.loadURL(appUrl);
  return window;
}
