import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTargets } from '../../build/build.mjs';

/** A checkout of a few small files, with the real build scripts and the real packages. */

const repository = fileURLToPath(new URL('../../', import.meta.url));

const sources: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({
    name: 'queuescope',
    version: '0.0.0',
    private: true,
    type: 'module',
    bin: { queuescope: 'build/queuescope.mjs' },
    scripts: { start: 'node build/start.mjs' },
  }),
  'src/base/words.ts': "export const words: string = 'the first words';\n",
  'src/hosts/cli/main.ts': `
import { words } from '../../base/words.ts';
class KeptName {}
export async function main(args: readonly string[]): Promise<number> {
  if (args[0] === 'wait') {
    return new Promise((resolve) => {
      const timer = setInterval(() => {}, 1000);
      process.once('SIGTERM', () => {
        clearInterval(timer);
        process.stdout.write('terminated\\n');
        resolve(130);
      });
      process.stdout.write('waiting\\n');
    });
  }
  process.stdout.write(JSON.stringify({ words, args, name: KeptName.name, pid: process.pid }) + '\\n');
  return args[0] === 'fail' ? 5 : 0;
}
`,
  'src/recording/recording-worker.ts':
    "import { words } from '../base/words.ts';\nexport const worker = words;\n",
  'renderer/index.html':
    '<!doctype html><title>page</title><script type="module" src="./main.tsx"></script>\n',
  'renderer/main.tsx':
    "import { render } from 'preact';\nimport './page.css';\nrender(<b>bold</b>, document.body);\n",
  'renderer/page.css': 'b { color: red; }\n',
  'electron/main.ts': "import { app } from 'electron';\nvoid app.whenReady();\n",
  'electron/preload.ts': "import { ipcRenderer } from 'electron';\nipcRenderer.send('x');\n",
};

let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'queuescope-checkout-'));
  for (const [path, text] of Object.entries(sources)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  }
  await mkdir(join(root, 'build'));
  for (const file of await readdir(join(repository, 'build'))) {
    if (file.endsWith('.mjs')) await cp(join(repository, 'build', file), join(root, 'build', file));
  }
  // Package by package, so that a test can put another one in the place of one.
  await mkdir(join(root, 'node_modules'));
  for (const name of await readdir(join(repository, 'node_modules'))) {
    if (name.startsWith('.') || name === 'electron') continue;
    await symlink(join(repository, 'node_modules', name), join(root, 'node_modules', name));
  }
});

afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one of the checkout's programs to its end, without this machine's display unless the test gives one. */
function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const env: NodeJS.ProcessEnv = { ...process.env, ...environment };
  for (const name of ['DISPLAY', 'WAYLAND_DISPLAY', 'ELECTRON_OVERRIDE_DIST_PATH', 'NODE_ENV']) {
    if (!(name in environment)) delete env[name];
  }
  return new Promise((resolve) => {
    const options = { cwd: tmpdir(), env, timeout: 60_000 };
    const child = execFile(
      process.execPath,
      [join(root, program), ...args],
      options,
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

async function edit(path: string, text: string): Promise<void> {
  await writeFile(join(root, path), text);
}

describe('the build', () => {
  test('builds each target once, and again only when what it is made of has changed', async () => {
    const lines: string[] = [];
    const print = (line: string): void => void lines.push(line);
    const results = await buildTargets({ root, print });
    expect(results).toEqual({ renderer: 'built', node: 'built', electron: 'built' });
    expect(lines.length).toBe(3);
    expect(lines[0]).toMatch(/^renderer +built in \d+\.\d s, \d+ KB$/);
    expect(await buildTargets({ root })).toEqual({
      renderer: 'unchanged',
      node: 'unchanged',
      electron: 'unchanged',
    });

    await utimes(join(root, 'renderer/page.css'), new Date(), new Date());
    expect(await buildTargets({ root, names: ['renderer'] })).toEqual({ renderer: 'unchanged' });
    await edit('renderer/page.css', 'b { color: blue; }\n');
    expect(await buildTargets({ root })).toEqual({
      renderer: 'built',
      node: 'unchanged',
      electron: 'unchanged',
    });

    await rm(join(root, 'dist/node/queuescope.js'));
    expect(await buildTargets({ root })).toEqual({
      renderer: 'unchanged',
      node: 'built',
      electron: 'unchanged',
    });
    expect((await readdir(join(root, 'dist'))).toSorted()).toEqual(['electron', 'node', 'renderer']);
  });

  test('makes a page that a strict policy allows: no inline code, no data address, files named by content', async () => {
    const html = await readFile(join(root, 'dist/renderer/index.html'), 'utf8');
    expect(html).toMatch(/<script type="module" crossorigin src="\.\/assets\/index-[\w-]+\.js"><\/script>/);
    expect(html).toMatch(/<link rel="stylesheet" crossorigin href="\.\/assets\/index-[\w-]+\.css">/);
    expect(html).not.toMatch(/<style|style=|data:|<script>|onload=/);
  });

  test('makes modules that keep names, with one copy of what they share, and a preload script in one file', async () => {
    const files = (await readdir(join(root, 'dist/node'))).filter((file) => file.endsWith('.js'));
    // The engine's process is left out: what it needs is not in this checkout.
    expect(files.filter((file) => !file.includes('-')).toSorted()).toEqual(['queuescope.js']);
    expect(files).toContain('recording-worker.js');
    expect(files.length).toBe(3);
    const preload = await readFile(join(root, 'dist/electron/preload.cjs'), 'utf8');
    expect(preload).toMatch(/require\(["']electron["']\)/);
    expect(await readFile(join(root, 'dist/electron/main.js'), 'utf8')).toMatch(/from ["']electron["']/);
    expect(await readdir(join(root, 'dist/electron'))).toContain('main.js.map');
  });

  test('that fails says where, leaves what was there, and works again once it is mended', async () => {
    await edit('src/base/words.ts', 'export const words = ;\n');
    const failed = await run('build/build.mjs', ['node']);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('words.ts');
    const { default: ignored, ...exports } = (await import(join(root, 'dist/node/queuescope.js'))) as Record<
      string,
      unknown
    >;
    expect([ignored, Object.keys(exports)]).toEqual([undefined, ['main']]);
    await edit('src/base/words.ts', "export const words: string = 'the second words';\n");
    expect((await run('build/build.mjs', ['node'])).stdout).toMatch(/^node +built/);
  });

  test('is done once when several ask for it at the same time', async () => {
    await edit('src/base/words.ts', "export const words: string = 'the third words';\n");
    const both = await Promise.all([run('build/build.mjs', ['node']), run('build/build.mjs', ['node'])]);
    const lines = both.map(({ stdout }) => stdout.split(/ +/)[1]?.trim()).toSorted();
    expect(lines).toEqual(['built', 'unchanged']);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
  });

  test('does not wait for the lock of a build that died', async () => {
    const dead = spawn(process.execPath, ['-e', '']);
    await new Promise((resolve) => dead.once('exit', resolve));
    await edit('dist/.lock', String(dead.pid));
    expect(await buildTargets({ root, names: ['node'] })).toEqual({ node: 'unchanged' });
  });

  test('knows no other targets', async () => {
    const { code, stderr } = await run('build/build.mjs', ['everything']);
    expect([code, stderr.trim()]).toEqual([1, 'no such target: everything']);
  });
});

describe('the command', () => {
  test('of a fresh checkout builds itself first; standard output belongs to the command', async () => {
    await rm(join(root, 'dist'), { recursive: true });
    const first = await run('build/queuescope.mjs', ['list', '--json']);
    expect(JSON.parse(first.stdout)).toMatchObject({
      words: 'the third words',
      args: ['list', '--json'],
      name: 'KeptName',
    });
    expect(first.stderr).toContain('Building node');
    expect(first.code).toBe(0);
    expect(await readdir(join(root, 'dist'))).toEqual(['node']);

    const second = await run('build/queuescope.mjs', ['list', '--json']);
    expect([second.code, second.stderr]).toEqual([0, '']);
  });

  test('follows a change of its sources', async () => {
    await edit('src/base/words.ts', "export const words: string = 'the fourth words';\n");
    const { stdout } = await run('build/queuescope.mjs', ['list']);
    expect(JSON.parse(stdout)).toMatchObject({ words: 'the fourth words' });
  });

  test('runs in the same process, ends with its code, and hears signals', async () => {
    expect((await run('build/queuescope.mjs', ['fail'])).code).toBe(5);
    const child: ChildProcess = spawn(process.execPath, [join(root, 'build/queuescope.mjs'), 'wait'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let stdout = '';
    const code = new Promise((resolve) => child.once('exit', resolve));
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (text.includes('waiting')) child.kill('SIGTERM');
    });
    expect(await code).toBe(130);
    expect(stdout).toBe('waiting\nterminated\n');
  });

  test('builds the page too for a host that shows it', async () => {
    await run('build/queuescope.mjs', ['serve']);
    expect((await readdir(join(root, 'dist'))).toSorted()).toEqual(['node', 'renderer']);
  });

  test('uses what is built where it cannot build, and says what to do where nothing is', async () => {
    const installed = await mkdtemp(join(tmpdir(), 'queuescope-installed-'));
    await cp(join(root, 'build'), join(installed, 'build'), { recursive: true });
    await cp(join(root, 'package.json'), join(installed, 'package.json'));
    const runInstalled = (): Promise<Ended> =>
      new Promise((resolve) => {
        const args = [join(installed, 'build/queuescope.mjs'), 'list'];
        const child = execFile(process.execPath, args, (_error, stdout, stderr) =>
          resolve({ code: child.exitCode, stdout, stderr }),
        );
      });
    const nothing = await runInstalled();
    expect([nothing.code, nothing.stdout]).toEqual([1, '']);
    expect(nothing.stderr).toContain('npm run build');
    await cp(join(root, 'dist'), join(installed, 'dist'), { recursive: true });
    const something = await runInstalled();
    expect(something.code).toBe(0);
    expect(JSON.parse(something.stdout)).toMatchObject({ args: ['list'] });
    await rm(installed, { recursive: true });
  });
});

describe.skipIf(process.platform !== 'linux')('npm start', () => {
  const asRoot = process.getuid?.() === 0;
  const served = { args: ['serve', '--open'] };
  const lastLine = (text: string): unknown => JSON.parse(text.trim().split('\n').at(-1) ?? '');

  test('without a display serves a browser, says why, and fetches nothing', async () => {
    const { code, stdout } = await run('build/start.mjs', []);
    expect(stdout).toContain('No window, a browser instead: there is no display.\n');
    expect(stdout).not.toContain('Fetching');
    expect(lastLine(stdout)).toMatchObject(served);
    expect(code).toBe(0);
  });

  test('serves a browser when it is asked to, and hands on other arguments', async () => {
    const { stdout } = await run('build/start.mjs', ['--browser', '--port', '8123'], { DISPLAY: ':99' });
    expect(stdout).toContain('the browser was asked for');
    expect(lastLine(stdout)).toMatchObject({ args: ['serve', '--open', '--port', '8123'] });
  });

  test.runIf(asRoot)("as root says that Electron's sandbox does not run there", async () => {
    const { stdout } = await run('build/start.mjs', [], { DISPLAY: ':99' });
    expect(stdout).toContain("No window, a browser instead: Electron's sandbox does not run as root.\n");
    expect(lastLine(stdout)).toMatchObject(served);
  });
});

describe.skipIf(process.platform !== 'linux')("Electron's binary", () => {
  /** The functions of start.mjs, which root cannot reach through it. */
  interface BinaryModule {
    hasDisplay(platform: NodeJS.Platform, environment: NodeJS.ProcessEnv): boolean;
    findElectron(root: string, environment: NodeJS.ProcessEnv): string | undefined;
    fetchElectron(
      root: string,
      options: { readonly deadlineMs: number; readonly print: (line: string) => void },
    ): Promise<string | undefined>;
    runElectron(
      program: string,
      args: readonly string[],
      options?: { readonly startUpMs?: number },
    ): Promise<{ readonly failed: string } | { readonly code: number }>;
  }
  let binary: BinaryModule;
  let mirror: Server | undefined;

  beforeAll(async () => {
    binary = (await import(join(root, 'build/electron-binary.mjs'))) as BinaryModule;
    await cp(join(repository, 'node_modules/electron'), join(root, 'node_modules/electron'), {
      recursive: true,
      filter: (path) => !path.includes('/node_modules/electron/dist') && !path.endsWith('path.txt'),
    });
  });

  afterAll(() => {
    mirror?.closeAllConnections();
    mirror?.close();
  });

  async function serveMirror(answer: 'not found' | 'never'): Promise<string> {
    mirror?.closeAllConnections();
    mirror?.close();
    const server = createServer((_request, response) => {
      if (answer === 'not found') response.writeHead(404).end();
    });
    mirror = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  async function fetchFrom(
    url: string,
    deadlineMs: number,
  ): Promise<{ reason: string | undefined; lines: string[] }> {
    const lines: string[] = [];
    const before = process.env['ELECTRON_MIRROR'];
    process.env['ELECTRON_MIRROR'] = url;
    process.env['electron_config_cache'] = join(root, '.electron-cache');
    try {
      const reason = await binary.fetchElectron(root, { deadlineMs, print: (line) => lines.push(line) });
      return { reason, lines };
    } finally {
      delete process.env['electron_config_cache'];
      if (before === undefined) delete process.env['ELECTRON_MIRROR'];
      else process.env['ELECTRON_MIRROR'] = before;
    }
  }

  test('is looked for where a display is', () => {
    expect(binary.hasDisplay('linux', {})).toBe(false);
    expect(binary.hasDisplay('linux', { DISPLAY: '' })).toBe(false);
    expect(binary.hasDisplay('linux', { DISPLAY: ':0' })).toBe(true);
    expect(binary.hasDisplay('linux', { WAYLAND_DISPLAY: 'wayland-0' })).toBe(true);
    expect(binary.hasDisplay('darwin', {})).toBe(true);
    expect(binary.hasDisplay('darwin', { SSH_CONNECTION: '10.0.0.1' })).toBe(false);
    expect(binary.hasDisplay('win32', {})).toBe(true);
  });

  test('that cannot be fetched is an answer with the reason; the installer runs on this Node', async () => {
    const { reason, lines } = await fetchFrom(await serveMirror('not found'), 20_000);
    expect(lines).toEqual([
      expect.stringMatching(/^Fetching Electron \d+\.\d+\.\d+ .*about \d+ MB/) as unknown,
    ]);
    expect(reason).toMatch(/^Electron could not be fetched \(.*404/);
    expect(binary.findElectron(root, {})).toBeUndefined();
  });

  test('that does not come is not waited for longer than said', async () => {
    const startedAtMs = Date.now();
    const { reason } = await fetchFrom(await serveMirror('never'), 1_000);
    expect(reason).toBe('Electron could not be fetched in 1 s');
    expect(Date.now() - startedAtMs).toBeLessThan(5_000);
  });

  test('is found where its package puts it, or where a variable says', async () => {
    const packageFolder = join(root, 'node_modules/electron');
    await mkdir(join(packageFolder, 'dist'));
    await writeFile(join(packageFolder, 'dist/electron'), '');
    // Without path.txt the fetch was not finished.
    expect(binary.findElectron(root, {})).toBeUndefined();
    await writeFile(join(packageFolder, 'path.txt'), 'electron');
    expect(binary.findElectron(root, {})).toBe(join(packageFolder, 'dist/electron'));
    const elsewhere = join(root, 'elsewhere');
    expect(binary.findElectron(root, { ELECTRON_OVERRIDE_DIST_PATH: elsewhere })).toBeUndefined();
    await mkdir(elsewhere);
    await writeFile(join(elsewhere, 'electron'), '');
    expect(binary.findElectron(root, { ELECTRON_OVERRIDE_DIST_PATH: elsewhere })).toBe(
      join(elsewhere, 'electron'),
    );
  });

  test.each<[string, string, unknown]>([
    ['runs until it is closed: its code', 'exit 0', { code: 0 }],
    ['ends at once with an error: there was no window', 'exit 127', { failed: '127' }],
    ['is killed at once: there was no window', 'kill -TRAP $$', { failed: 'SIGTRAP' }],
  ])('that %s', async (_name, script, expected) => {
    const program = join(root, 'elsewhere', 'electron');
    await writeFile(program, `#!/bin/sh\n${script}\n`);
    await chmod(program, 0o755);
    expect(await binary.runElectron(program, [])).toEqual(expected);
  });

  test('that fails after a while had its window', async () => {
    expect(await binary.runElectron(join(root, 'elsewhere', 'electron'), [], { startUpMs: 0 })).toMatchObject(
      {
        code: 1,
      },
    );
    expect(await binary.runElectron(join(root, 'elsewhere', 'nothing'), [])).toMatchObject({
      failed: expect.stringContaining('ENOENT') as unknown,
    });
  });
});
