import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What is built, from what. An entry whose source, or something it cannot be built without, is not there is left out;
 * a target without entries is skipped.
 *
 * @typedef {{ source: string, needs?: string[] }} Entry
 * @typedef {{
 *   kind: 'page' | 'node' | 'electron',
 *   entries: Record<string, Entry>,
 *   sources: string[],
 *   outFolder: string,
 * }} Target
 * @type {Record<string, Target>}
 */
export const targets = {
  renderer: {
    kind: 'page',
    entries: { index: { source: 'renderer/index.html' } },
    sources: ['renderer', 'src/base', 'src/contract', 'src/rpc'],
    outFolder: 'dist/renderer',
  },
  node: {
    kind: 'node',
    entries: {
      queuescope: { source: 'src/hosts/cli/main.ts' },
      'recording-worker': { source: 'src/recording/recording-worker.ts' },
      'engine-process': { source: 'electron/engine-process.ts', needs: ['src/hosts/bootstrap.ts'] },
    },
    sources: ['src', 'electron'],
    outFolder: 'dist/node',
  },
  electron: {
    kind: 'electron',
    entries: {
      main: { source: 'electron/main.ts' },
      preload: { source: 'electron/preload.ts' },
    },
    sources: ['src', 'electron'],
    outFolder: 'dist/electron',
  },
};

/** Files beside the sources that decide what comes out. */
const commonInputs = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'build/build.mjs',
  'build/targets.mjs',
  'build/vite.node.mjs',
  'build/vite.renderer.mjs',
];

/** In each output folder: what it was built from and what came out. */
export const stampName = '.build.json';

/**
 * The entries of a target that can be built here: name → source.
 * @param {string} root
 * @param {Target} target
 * @returns {Record<string, string>}
 */
export function presentEntries(root, target) {
  const present = {};
  for (const [name, { source, needs = [] }] of Object.entries(target.entries)) {
    if ([source, ...needs].every((file) => existsSync(join(root, file)))) present[name] = source;
  }
  return present;
}

/**
 * A digest of everything that a target is built from.
 * @param {string} root
 * @param {Target} target
 */
export function inputHash(root, target) {
  const hash = createHash('sha256');
  const addFile = (path) => {
    hash.update(`${path}\0`);
    hash.update(readFileSync(join(root, path)));
    hash.update('\0');
  };
  const addFolder = (folder) => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (entry.isDirectory()) addFolder(`${folder}/${entry.name}`);
      else if (entry.isFile()) addFile(`${folder}/${entry.name}`);
    }
  };
  for (const path of commonInputs) if (existsSync(join(root, path))) addFile(path);
  for (const folder of target.sources) if (existsSync(join(root, folder))) addFolder(folder);
  return hash.digest('hex');
}

/**
 * Whether a target's output is whole and of today's sources.
 * @param {string} root
 * @param {Target} target
 * @param {string} [hash] of its inputs, if known already
 */
export function isCurrent(root, target, hash = inputHash(root, target)) {
  const folder = join(root, target.outFolder);
  try {
    const stamp = JSON.parse(readFileSync(join(folder, stampName), 'utf8'));
    return stamp.hash === hash && stamp.files.every((file) => existsSync(join(folder, file)));
  } catch {
    return false;
  }
}
