/**
 * USB/IP as its user meets it, both ends from the command line: `serve-usbip` offers virtual devices, and `list --usbip` and
 * `run usbip://…` find and drive them as they do any other.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { buildTargets } from '../../build/build.mjs';
import { catalogue } from '../../src/sim/catalogue.ts';
import { jsonLines, runCli, type RunningCli, startCli } from '../harness/run-cli.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'queuescope-usbip-'));
const servers: RunningCli[] = [];

beforeAll(async () => {
  await buildTargets({ root, names: ['node'], print: () => {} });
}, 120_000);

afterAll(async () => {
  for (const { child, ended } of servers) {
    child.kill('SIGKILL');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
});

interface Server {
  readonly running: RunningCli;
  readonly port: number;
  readonly first: Record<string, unknown>;
  events(): Record<string, unknown>[];
}

async function serve(...args: readonly string[]): Promise<Server> {
  const running = startCli(['serve-usbip', '--json', ...(args.length === 0 ? ['--port', '0'] : args)]);
  servers.push(running);
  await vi.waitFor(() => expect(running.stdoutSoFar()).toContain('\n'), { timeout: 20_000 });
  const [first = {}] = jsonLines(running.stdoutSoFar());
  return {
    running,
    port: Number(first['port']),
    first,
    events: () => jsonLines(running.stdoutSoFar()).slice(1),
  };
}

function samples(running: RunningCli): number {
  return running.stdoutSoFar().split('"type":"sample"').length - 1;
}

describe('serve-usbip', () => {
  test('tells its port and devices, and ends with 0 when it is interrupted', async () => {
    const { running, first } = await serve();
    expect(first).toMatchObject({ type: 'listening', host: '127.0.0.1' });
    expect((first['devices'] as { busId: string; id: string }[]).map(({ busId, id }) => [busId, id])).toEqual(
      catalogue.map(({ name }, index) => [`1-${index + 1}`, `sim:${name}`]),
    );
    running.child.kill('SIGINT');
    expect((await running.ended).exitCode).toBe(0);
  }, 30_000);

  test('only the devices that were named', async () => {
    const { first, running } = await serve('--port', '0', 'sim:tether-usb2', 'modem-10mbit');
    expect(first['devices']).toMatchObject([
      { busId: '1-1', id: 'sim:tether-usb2' },
      { busId: '1-2', id: 'sim:modem-10mbit' },
    ]);
    running.child.kill('SIGINT');
    await running.ended;
  }, 30_000);

  test('a device that there is not, a port that is taken', async () => {
    const unknown = await runCli(['serve-usbip', '--port', '0', 'toaster']);
    expect(unknown.exitCode).toBe(3);
    expect(unknown.stderr).toMatch(/toaster.*\n.*modem-10mbit/);
    const { port, running } = await serve();
    const taken = await runCli(['serve-usbip', '--port', String(port)]);
    expect(taken.exitCode).toBe(2);
    expect(taken.stderr).toMatch(/EADDRINUSE/);
    running.child.kill('SIGINT');
    await running.ended;
  }, 30_000);
});

describe('a client of it', () => {
  let server: Server;

  beforeAll(async () => {
    server = await serve();
  }, 30_000);

  test('list --usbip: its devices beside the others', async () => {
    const { exitCode, stdout } = await runCli(['list', '--usbip', `127.0.0.1:${server.port}`, '--json']);
    expect(exitCode).toBe(0);
    const devices = JSON.parse(stdout) as { id: string; mode: string; minidriver?: string }[];
    const minidriverOf = new Map(devices.map(({ id, minidriver }) => [id, minidriver]));
    expect(
      devices.filter(({ mode }) => mode === 'remote').map(({ id, minidriver }) => [id, minidriver]),
    ).toEqual(
      catalogue.map(({ name }, index) => [
        `usbip://127.0.0.1:${server.port}/1-${index + 1}`,
        minidriverOf.get(`sim:${name}`),
      ]),
    );
    expect(devices.some(({ id }) => id === 'sim:modem-10mbit')).toBe(true);
  });

  test.each([
    ['a server that is not there', ['list', '--usbip', '127.0.0.1:1'], 3, /usbipd -D/],
    ['a name that is none', ['list', '--usbip', 'a b'], 2, /host:port/],
    ['a device of a server that is not there', ['run', 'usbip://127.0.0.1:1/1-1'], 3, /no USB\/IP server/],
    ['an id that is none', ['run', 'usbip://'], 3, /no device usbip:/],
  ])('%s', async (_name, args, code, words) => {
    const { exitCode, stderr } = await runCli(args);
    expect(stderr).toMatch(words);
    expect(exitCode).toBe(code);
  });

  test('run: BQL off and on over a slow link, as on the virtual device itself', async () => {
    const { exitCode, stdout, stderr } = await runCli([
      'run',
      `usbip://127.0.0.1:${server.port}/1-1`,
      '--bql',
      'ab',
      '--duration',
      '10',
      '--json',
    ]);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    const result = jsonLines(stdout).at(-1) ?? {};
    expect(result).toMatchObject({
      state: 'stopped',
      session: { device: { name: 'Queuescope virtual modem', mode: 'remote', minidriver: 'cdc_ether' } },
    });
    const [off, on] = result['segments'] as {
      rttUs: { p50: number };
      throughputBitsPerSecond: number;
      inflightBytes: { max: number };
    }[];
    // 300 transfers of 1,514 bytes and 4,096 bytes in the device take 364 ms, and the link itself 24.
    expect(off?.rttUs.p50).toBeGreaterThan(350_000);
    expect(off?.rttUs.p50).toBeLessThan(450_000);
    expect(off?.inflightBytes.max).toBeGreaterThan(450_000);
    expect(off?.inflightBytes.max).toBeLessThanOrEqual(454_200);
    expect(on?.rttUs.p50).toBeLessThan(70_000);
    expect(on?.throughputBitsPerSecond).toBeGreaterThan(9e6);
    expect(server.events().at(-1)).toMatchObject({ type: 'detached', busId: '1-1', refused: 0, failed: 0 });
  }, 60_000);

  test('a device that another one drives: exit code 4, and what to do', async () => {
    const id = `usbip://127.0.0.1:${server.port}/1-2`;
    const first = startCli(['run', id, '--duration', '60', '--json']);
    await expect.poll(() => samples(first), { timeout: 20_000 }).toBeGreaterThan(3);
    const second = await runCli(['run', id, '--duration', '1', '--json']);
    expect(second.exitCode).toBe(4);
    expect(second.stderr).toMatch(/in use by another client[^]*usbip unbind --busid 1-2/);
    first.child.kill('SIGINT');
    expect((await first.ended).exitCode).toBe(130);
  }, 60_000);

  test('the server is killed: exit code 5, and what was recorded is kept', async () => {
    const own = await serve();
    const out = join(folder, 'lost.qscope');
    const run = startCli([
      'run',
      `usbip://127.0.0.1:${own.port}/1-2`,
      '--duration',
      '60',
      '--out',
      out,
      '--json',
    ]);
    await expect.poll(() => samples(run), { timeout: 20_000 }).toBeGreaterThan(20);
    own.running.child.kill('SIGKILL');
    const { exitCode, stdout, stderr } = await run.ended;
    expect(exitCode).toBe(5);
    expect(stderr).toMatch(/was lost/);
    expect(jsonLines(stdout).at(-1)).toMatchObject({ type: 'result', state: 'lost' });
    expect(existsSync(out)).toBe(true);
  }, 60_000);

  test('the server falls silent with its connections open: exit code 5 within ten seconds', async () => {
    const own = await serve();
    const run = startCli(['run', `usbip://127.0.0.1:${own.port}/1-2`, '--duration', '60', '--json']);
    await expect.poll(() => samples(run), { timeout: 20_000 }).toBeGreaterThan(20);
    own.running.child.kill('SIGSTOP');
    const stoppedAtMs = performance.now();
    const { exitCode, stderr } = await run.ended;
    own.running.child.kill('SIGKILL');
    expect(stderr).toMatch(/fell silent/);
    expect(exitCode).toBe(5);
    expect(performance.now() - stoppedAtMs).toBeLessThan(10_000);
  }, 60_000);

  test('run --wait: killed and started anew, it goes on in the same recording with the gap marked', async () => {
    const own = await serve();
    const out = join(folder, 'gap.qscope');
    const run = startCli([
      'run',
      `usbip://127.0.0.1:${own.port}/1-2`,
      '--duration',
      '12',
      '--wait',
      '30',
      '--out',
      out,
      '--json',
    ]);
    await expect.poll(() => samples(run), { timeout: 20_000 }).toBeGreaterThan(20);
    own.running.child.kill('SIGKILL');
    await own.running.ended;
    const again = await serve('--port', String(own.port));
    const { exitCode, stdout } = await run.ended;
    expect(exitCode).toBe(0);
    again.running.child.kill('SIGINT');
    const lines = jsonLines(stdout);
    const kinds = lines.filter(({ type }) => type === 'event').map(({ kind }) => kind);
    expect(kinds.indexOf('gap')).toBeGreaterThan(kinds.indexOf('unplug'));
    expect(kinds.indexOf('unplug')).toBeGreaterThan(0);
    const result = lines.at(-1) ?? {};
    expect(result).toMatchObject({ type: 'result', state: 'stopped' });
    const [segment] = result['segments'] as { throughputBitsPerSecond: number }[];
    expect(segment?.throughputBitsPerSecond).toBeGreaterThan(1e6);

    const report = await runCli(['report', out, '--format', 'json', '--out', '-']);
    expect(report.exitCode).toBe(0);
    const html = await runCli(['report', out, '--out', join(folder, 'gap.html')]);
    expect(html.exitCode).toBe(0);
    const csv = await runCli(['report', out, '--format', 'csv', '--out', '-']);
    const [header = '', ...rows] = csv.stdout.trim().split(/\r?\n/);
    const column = header.split(',').indexOf('inflightBytes');
    const gaps = rows.filter((row) => row.split(',')[column] === '');
    expect(gaps).toHaveLength(2);
    expect(rows.length).toBe(lines.filter(({ type }) => type === 'sample').length);
  }, 90_000);
});
