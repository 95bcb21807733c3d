/** `queuescope observe` as scripts meet it; what it shows of BQL is the laboratory's to check. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { sessionSchema } from '../../src/contract/session.ts';
import { jsonLines, runCli } from '../harness/run-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'queuescope-observe-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const environment = { QUEUESCOPE_RECORDINGS: folder };
const netdevs = '/sys/class/net';
/** Any interface of this machine will do: it is only read. */
const netdev = (existsSync(netdevs) ? readdirSync(netdevs) : []).find(
  (name) => name !== 'lo' && existsSync(join(netdevs, name, 'ifindex')),
);

describe('a request that makes no sense', () => {
  test.each([
    [['observe'], 2],
    [['observe', 'eth0', '--target', 'somewhere'], 2],
    [['observe', 'eth0', '--bql', 'maybe'], 2],
    [['observe', 'eth0', '--limit-min', '5000', '--limit-max', '4000'], 2],
    [['observe', 'eth0', '--limit-min', '1879048193'], 2],
    [['observe', 'net:nothing-here'], 3],
    [['observe', '../../etc'], 3],
  ] as const)('%j ends with exit code %i', async (args, exitCode) => {
    const result = await runCli(args, environment);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stdout).toBe('');
    expect(result.stderr).not.toBe('');
  });
});

describe.runIf(netdev !== undefined)(`an interface of this machine (${netdev})`, () => {
  const limitsFolder = join(netdevs, netdev ?? '', 'queues/tx-0/byte_queue_limits');
  const limits = (): string[] =>
    existsSync(limitsFolder)
      ? ['limit_min', 'limit_max', 'hold_time'].map((file) => readFileSync(join(limitsFolder, file), 'utf8'))
      : [];

  test('streams samples as JSON lines, records them, and is left as it was', async () => {
    const before = limits();
    const file = join(folder, 'observed.qscope');
    const result = await runCli(
      ['observe', netdev ?? '', '--duration', '1.5', '--sample-rate', '40', '--json', '--out', file],
      environment,
    );
    expect(result.exitCode).toBe(0);
    const lines = jsonLines(result.stdout);
    const samples = lines.filter(({ type }) => type === 'sample');
    expect(samples.length).toBeGreaterThan(30);
    // Only a driver of our own knows these.
    for (const column of ['txTransfers', 'driverQueueP50Us', 'qdiscWaitP50Us', 'driverXoff', 'stackXoff']) {
      expect(samples.every((sample) => sample[column] === null)).toBe(true);
    }
    expect(samples.every(({ txBitsPerSecond }) => typeof txBitsPerSecond === 'number')).toBe(true);
    const session = sessionSchema.parse(lines.at(-1)?.['session']);
    expect(session.device).toMatchObject({ id: `net:${netdev}`, mode: 'observe', netdev });
    expect(session.settings.load.enabled).toBe(false);
    expect(limits()).toEqual(before);
    const report = await runCli(['report', file, '--format', 'json', '--out', '-'], environment);
    expect(report.exitCode).toBe(0);
    expect(jsonLines(report.stdout.replaceAll('\n', ''))).toHaveLength(1);
  });
});
