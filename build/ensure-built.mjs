import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isCurrent, presentEntries, targets } from './targets.mjs';

/**
 * Builds those of the named targets that are not current, where that can be done: in a checkout with its development
 * packages. Elsewhere the output that came along is used as it is. When nothing has to be built this takes some tens of
 * milliseconds and prints nothing. Everything it prints goes to standard error.
 *
 * The build runs in a process of its own, so that the bundler's memory and threads do not stay with the program.
 *
 * @param {string} root
 * @param {string[]} names
 * @returns {Promise<boolean>} false if the build failed; it has said why
 */
export async function ensureBuilt(root, names) {
  if (!existsSync(join(root, 'src')) || !existsSync(join(root, 'node_modules', 'vite'))) return true;
  const stale = names.filter((name) => {
    const target = targets[name];
    return Object.keys(presentEntries(root, target)).length > 0 && !isCurrent(root, target);
  });
  if (stale.length === 0) return true;
  process.stderr.write(`Building ${stale.join(', ')}, which takes some seconds after a change.\n`);
  const child = spawn(process.execPath, [join(root, 'build', 'build.mjs'), ...stale], {
    stdio: ['ignore', process.stderr.fd, process.stderr.fd],
  });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode) => resolve(exitCode));
  });
  return code === 0;
}
