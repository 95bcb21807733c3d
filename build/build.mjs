import { existsSync, readdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withBuildLock } from './build-lock.mjs';
import { inputHash, isCurrent, presentEntries, stampName, targets } from './targets.mjs';
import { nodeConfig } from './vite.node.mjs';
import { rendererConfig } from './vite.renderer.mjs';

/**
 * Builds what is not current: `node build/build.mjs [target …]`, without names all targets. One line a target.
 * A target is built beside its old output and then put in its place, so a failed build leaves what was there.
 */

/**
 * @param {{ root: string, names?: string[], print?: (line: string) => void }} options
 * @returns {Promise<Record<string, 'built' | 'unchanged' | 'skipped'>>}
 */
export async function buildTargets({ root, names = Object.keys(targets), print = () => {} }) {
  const unknown = names.filter((name) => !Object.hasOwn(targets, name));
  if (unknown.length > 0) throw new Error(`no such target: ${unknown.join(', ')}`);
  return withBuildLock(join(root, 'dist'), async () => {
    const results = {};
    for (const name of names) results[name] = await buildTarget(root, name, print);
    return results;
  });
}

async function buildTarget(root, name, print) {
  const target = targets[name];
  const line = (words) => print(`${name.padEnd(10)}${words}`);
  const entries = presentEntries(root, target);
  if (Object.keys(entries).length === 0) {
    line('skipped: its sources are not here');
    return 'skipped';
  }
  const hash = inputHash(root, target);
  if (isCurrent(root, target, hash)) {
    line('unchanged');
    return 'unchanged';
  }
  const startedAtMs = Date.now();
  const outFolder = join(root, target.outFolder);
  const newFolder = join(root, 'dist', `.new-${name}`);
  const oldFolder = join(root, 'dist', `.old-${name}`);
  for (const folder of [newFolder, oldFolder]) rmSync(folder, { recursive: true, force: true });
  await runVite(root, target, entries, newFolder);
  const files = filesIn(newFolder);
  writeFileSync(join(newFolder, stampName), `${JSON.stringify({ hash, files }, undefined, 1)}\n`);
  try {
    renameSync(outFolder, oldFolder);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  renameSync(newFolder, outFolder);
  rmSync(oldFolder, { recursive: true, force: true });
  const kilobytes = files
    .filter((file) => !file.endsWith('.map'))
    .reduce((sum, file) => sum + statSync(join(outFolder, file)).size / 1000, 0);
  const seconds = (Date.now() - startedAtMs) / 1000;
  line(`built in ${seconds.toFixed(1)} s, ${kilobytes.toFixed(0)} KB`);
  return 'built';
}

async function runVite(root, target, entries, outFolder) {
  const { build } = await import('vite');
  const environment = process.env.NODE_ENV;
  try {
    switch (target.kind) {
      case 'page':
        await build(rendererConfig({ root: join(root, 'renderer'), outFolder }));
        break;
      case 'node':
        await build(nodeConfig({ root, outFolder, entries }));
        break;
      case 'electron': {
        // A sandboxed preload script is CommonJS, in one file; everything else is a module.
        const { preload, ...modules } = entries;
        await build(nodeConfig({ root, outFolder, entries: modules }));
        if (preload !== undefined) {
          const config = nodeConfig({ root, outFolder, entries: { preload }, format: 'cjs' });
          await build({ ...config, build: { ...config.build, emptyOutDir: false } });
        }
        break;
      }
    }
  } finally {
    // vite sets it for itself.
    if (environment === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = environment;
  }
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

const program = process.argv[1];
if (program !== undefined && import.meta.url === pathToFileURL(realpathSync(program)).href) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const names = process.argv.slice(2);
  // `npm ci --omit=dev` runs this too, by way of the package's `prepare`.
  if (!existsSync(join(root, 'node_modules', 'vite'))) {
    process.stdout.write('nothing built: the development packages are not installed\n');
    process.exit(0);
  }
  try {
    await buildTargets({
      root,
      ...(names.length === 0 ? {} : { names }),
      print: (line) => process.stdout.write(`${line}\n`),
    });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
