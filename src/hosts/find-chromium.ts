import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** What Chromium and its relatives are called on PATH, as distributions and their makers have it. */
const programs = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'microsoft-edge',
  'microsoft-edge-stable',
];

const macPrograms = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
];

const windowsFolders = ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'LOCALAPPDATA'];
const windowsPrograms = [
  'Google\\Chrome\\Application\\chrome.exe',
  'Chromium\\Application\\chrome.exe',
  'Microsoft\\Edge\\Application\\msedge.exe',
];

/** A Chromium, Chrome or Edge of this machine: the one that CHROMIUM_PATH names and no other, or the first that is there. */
export function findChromium(environment: Environment, platform: NodeJS.Platform): string | undefined {
  const named = environment['CHROMIUM_PATH'];
  if (named !== undefined && named !== '') return isProgram(named) ? named : undefined;
  return candidates(environment, platform).find(isProgram);
}

function candidates(environment: Environment, platform: NodeJS.Platform): string[] {
  if (platform === 'darwin') return macPrograms;
  if (platform === 'win32') {
    const folders = windowsFolders.flatMap((name) => environment[name] ?? []);
    return windowsPrograms.flatMap((program) => folders.map((folder) => `${folder}\\${program}`));
  }
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return programs.flatMap((program) => folders.map((folder) => join(folder, program)));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
