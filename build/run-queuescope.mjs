import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt } from './ensure-built.mjs';

const exitInternal = 1;

/**
 * Runs the command line in this process, built first if need be, and leaves its exit code in `process.exitCode`.
 *
 * @param {string} root
 * @param {string[]} args
 */
export async function runQueuescope(root, args) {
  // Only the browser host shows the page.
  const names = args.includes('serve') ? ['node', 'renderer'] : ['node'];
  if (!(await ensureBuilt(root, names))) {
    process.exitCode = exitInternal;
    return;
  }
  const program = join(root, 'dist', 'node', 'queuescope.js');
  if (!existsSync(program)) {
    process.stderr.write('Queuescope is not built here. Build it with:\nnpm ci && npm run build\n');
    process.exitCode = exitInternal;
    return;
  }
  process.setSourceMapsEnabled(true);
  const { main } = await import(pathToFileURL(program).href);
  process.exitCode = await main(args);
}
