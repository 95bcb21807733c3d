/**
 * The page, for browsers and for Electron's window: one folder of files named by their content. Nothing is inlined into
 * the HTML and nothing becomes a `data:` address, for the page's Content-Security-Policy would block it.
 *
 * @param {{ root: string, outFolder: string }} options `root` holds index.html
 * @returns {import('vite').InlineConfig}
 */
export function rendererConfig({ root, outFolder }) {
  return {
    configFile: false,
    root,
    // Relative, so that the page works under http: and app: alike.
    base: './',
    clearScreen: false,
    logLevel: 'warn',
    publicDir: 'public',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: outFolder,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      sourcemap: true,
      reportCompressedSize: false,
    },
  };
}
