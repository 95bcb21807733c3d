import { spawn } from 'node:child_process';

/** The program that opens a page in the user's browser; undefined where there can be none. */
function opener(
  platform: NodeJS.Platform,
  environment: NodeJS.ProcessEnv,
): readonly [string, ...string[]] | undefined {
  if (platform === 'darwin') return ['open'];
  // The empty argument is the new window's title.
  if (platform === 'win32') return ['cmd', '/c', 'start', ''];
  const hasDisplay = (environment['DISPLAY'] ?? environment['WAYLAND_DISPLAY'] ?? '') !== '';
  return hasDisplay ? ['xdg-open'] : undefined;
}

/** Opens a page in the default browser. Not being able to is no error: the URL has been printed. */
export function openBrowser(url: string): void {
  const command = opener(process.platform, process.env);
  if (command === undefined) return;
  const [program, ...args] = command;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
