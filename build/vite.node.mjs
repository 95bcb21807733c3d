/** Packages with a native part, and Electron's own module: loaded where they are installed, never bundled. */
const neverBundled = ['usb', 'libsql', 'koffi', 'electron'];

/** Packages that are bundled, because loading their many files one by one is most of a command's start. */
const bundled = ['zod', 'commander', 'hdr-histogram-js'];

/**
 * What Node runs: programs and workers that share their common code. All files lie in one folder, so that
 * `new URL('./worker.js', import.meta.url)` means the same from each of them.
 *
 * @param {{ root: string, outFolder: string, entries: Record<string, string>, format?: 'es' | 'cjs' }} options
 *   `entries`: output name without extension → source
 * @returns {import('vite').InlineConfig}
 */
export function nodeConfig({ root, outFolder, entries, format = 'es' }) {
  const extension = format === 'cjs' ? 'cjs' : 'js';
  return {
    configFile: false,
    root,
    clearScreen: false,
    logLevel: 'warn',
    publicDir: false,
    ssr: { noExternal: bundled },
    build: {
      ssr: true,
      outDir: outFolder,
      emptyOutDir: true,
      target: 'node20',
      minify: false,
      sourcemap: true,
      reportCompressedSize: false,
      rolldownOptions: {
        input: entries,
        external: neverBundled,
        output: {
          format,
          keepNames: true,
          entryFileNames: `[name].${extension}`,
          chunkFileNames: `[name]-[hash].${extension}`,
        },
      },
    },
  };
}
