import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type LayerName, layers } from '../../build/layers.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const layerNames = Object.keys(layers) as LayerName[];

interface Import {
  readonly file: string;
  readonly specifier: string;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourceFiles(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

/** Static and dynamic imports and re-exports. Comments are taken out first; strings elsewhere do not look like imports. */
function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const patterns = [
    /(?:import|export)\s[^'"`;]*?from\s*['"]([^'"]+)['"]/g,
    /import\s*['"]([^'"]+)['"]/g,
    /import\(\s*['"]([^'"]+)['"]\s*\)/g,
  ];
  return patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map((match) => ({ file, specifier: match[1] ?? '' })),
  );
}

function layerOf(path: string): LayerName | undefined {
  return layerNames.find((name) => path.startsWith(`${layers[name].folder}/`));
}

function isAllowedPackage(name: LayerName, specifier: string): boolean {
  return layers[name].packages.some(
    (allowed) =>
      specifier === allowed ||
      specifier.startsWith(`${allowed}/`) ||
      (allowed === 'node:*' && specifier.startsWith('node:')),
  );
}

describe('layers', () => {
  test('every folder of src, and every top-level source folder, has a row', () => {
    const folders = [
      ...readdirSync(join(root, 'src')).map((name) => `src/${name}`),
      ...['electron', 'renderer'].filter((name) => existsSync(join(root, name))),
    ];
    const listed = new Set(layerNames.map((name) => layers[name].folder));
    expect(folders.filter((folder) => !listed.has(folder))).toEqual([]);
  });

  test('the table has no cycle', () => {
    const reachable = (name: LayerName, seen: Set<LayerName>): Set<LayerName> => {
      for (const next of layers[name].imports) {
        if (seen.has(next)) continue;
        seen.add(next);
        reachable(next, seen);
      }
      return seen;
    };
    expect(layerNames.filter((name) => reachable(name, new Set()).has(name))).toEqual([]);
  });

  for (const name of layerNames) {
    const { folder, imports, core } = layers[name];
    if (!existsSync(join(root, folder))) continue;
    const files = sourceFiles(folder);

    test(`${name} imports only what it may`, () => {
      const wrong = files.flatMap(importsOf).filter(({ file, specifier }) => {
        if (!specifier.startsWith('.')) return !isAllowedPackage(name, specifier);
        const target = relative(root, resolve(root, dirname(file), specifier));
        const layer = layerOf(target);
        if (layer === name) return false;
        // The manifest is the one file outside of all layers that may be read, for the version in it.
        if (target === 'package.json') return name !== 'hosts';
        if (folder === 'renderer' && target.endsWith('.css')) return false;
        return layer === undefined || !imports.includes(layer);
      });
      expect(wrong).toEqual([]);
    });

    if (!core) continue;
    test(`${name} knows neither clock nor chance nor machine`, () => {
      const banned =
        /\b(?:Date\.now|new Date|performance\.now|Math\.random|setTimeout|setInterval|setImmediate|process\.|Buffer\.)/;
      const wrong = files.filter((file) => {
        const text = readFileSync(join(root, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
        return banned.test(text);
      });
      expect(wrong).toEqual([]);
    });
  }
});
