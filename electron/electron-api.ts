import type * as Electron from 'electron';

/** What the shell uses of Electron, handed in from main.ts, so that all the rest runs under a test's double. */
export type ElectronApi = Pick<
  typeof Electron,
  | 'app'
  | 'BrowserWindow'
  | 'ipcMain'
  | 'Menu'
  | 'MessageChannelMain'
  | 'nativeTheme'
  | 'powerMonitor'
  | 'protocol'
  | 'session'
> & {
  readonly utilityProcess: Pick<typeof Electron.utilityProcess, 'fork'>;
};
