import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { createServer } from 'vite';

/** Writes docs/scenario.schema.json anew from the schema in the source: `node build/scenario-schema.mjs`. */
const root = fileURLToPath(new URL('..', import.meta.url));
const file = join(root, 'docs', 'scenario.schema.json');
const server = await createServer({
  root,
  configFile: false,
  appType: 'custom',
  logLevel: 'error',
  server: { middlewareMode: true, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
});
try {
  const { scenarioJsonSchema } = await server.ssrLoadModule('/src/probes/scenario-json-schema.ts');
  const text = JSON.stringify(scenarioJsonSchema(), undefined, 2);
  writeFileSync(file, await format(text, { ...(await resolveConfig(file)), filepath: file }));
} finally {
  await server.close();
}
