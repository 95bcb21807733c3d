import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';

const require = createRequire(import.meta.url);

/** Bundles a TypeScript entry into one .mjs that plain Node runs from anywhere; answers with its path. */
export async function bundleNodeEntry(entry: URL, folder: string): Promise<string> {
  await build({
    configFile: false,
    logLevel: 'error',
    ssr: { noExternal: true },
    build: {
      ssr: fileURLToPath(entry),
      outDir: folder,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        external: [/^node:/, /^file:/],
        output: { entryFileNames: '[name].mjs' },
      },
    },
    plugins: [
      {
        // The bundle lies in a folder that has no node_modules above it.
        name: 'native-package-by-path',
        enforce: 'pre',
        resolveId(id) {
          return id === 'libsql'
            ? { id: pathToFileURL(require.resolve('libsql')).href, external: true }
            : undefined;
        },
      },
    ],
  });
  const name = entry.pathname.replace(/^.*\//, '').replace(/\.ts$/, '.mjs');
  return join(folder, name);
}
