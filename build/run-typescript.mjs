import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

/**
 * Runs a program of this checkout that is written in TypeScript and not part of a build: node build/run-typescript.mjs FILE
 * [ARGUMENT...]. The file exports `main`, which gets the arguments and answers with the exit code.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const [file, ...args] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: run-typescript.mjs FILE [ARGUMENT...]');
const { module } = await runnerImport(resolve(file), {
  root,
  configFile: false,
  logLevel: 'warn',
  cacheDir: join(root, 'node_modules/.vite-run'),
});
process.exitCode = await module.main(args);
