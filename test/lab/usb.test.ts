/** Two ways to one device: what a driver sees through usbfs directly is what it sees through libusb. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun } from './guest.ts';
import { readRun } from './run-output.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Outcome {
  readonly way: string;
  readonly steps: Readonly<Record<string, unknown>>;
}

let guest: GuestRun;

async function bundle(): Promise<string> {
  const outFolder = mkdtempSync(join(tmpdir(), 'usb-program-'));
  try {
    await build({
      configFile: false,
      root,
      logLevel: 'warn',
      publicDir: false,
      build: {
        ssr: join(root, 'test/lab/usb-program.ts'),
        outDir: outFolder,
        emptyOutDir: true,
        target: 'node20',
        rolldownOptions: { external: ['usb', 'koffi'] },
      },
    });
    return readFileSync(join(outFolder, 'usb-program.js'), 'utf8');
  } finally {
    rmSync(outFolder, { recursive: true });
  }
}

beforeAll(async () => {
  guest = await bootGuest({
    name: 'usb',
    program: true,
    scriptFile: new URL('usb.guest.sh', import.meta.url),
    files: { 'dist/usb-program.js': await bundle() },
    limitSeconds: 400,
  });
}, 520_000);

const outcomeOf = (scenario: string): Outcome => guest.scenario(scenario).json('steps.json') as Outcome;

describe.each(['usbfs', 'libusb'])('through %s', (way) => {
  test('all that a driver can ask for is done, and every transfer ends', () => {
    const { way: used, steps } = outcomeOf(way);
    expect(used).toBe(way);
    expect(steps).toMatchObject({
      control: 'completed 28',
      'refused control': 'stall 0',
      altsetting: 'completed 0',
      'clear halt': 'completed 0',
      submit: { ok: 100 },
      cancelled: { cancelled: 100 },
      'altsetting under transfers': ['completed 0', { cancelled: 8 }],
      'reset under transfers': ['completed 0', { cancelled: 8 }],
      'after the reset': [false, 'completed 28', 'completed 0', { ok: 4 }],
      'out of memory': { refused: true, others: 0 },
      close: [{ drivers: ['cdc_ncm', 'cdc_ncm'], notReturned: 0, transfersLost: 0 }, expect.anything()],
      unplugged: {
        gone: true,
        missing: 0,
        ended: 8,
        request: 'gone 0',
        submit: { gone: 1 },
        close: { notReturned: 0, transfersLost: 0 },
      },
    });
  });

  test('the port was reset once, and no interface was used without a claim', () => {
    const scenario = guest.scenario(way);
    expect(scenario.number('resets')).toBe(1);
    expect(scenario.number('unclaimed')).toBe(0);
    expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
  });
});

test('both ways come to the same, step by step', () => {
  expect(outcomeOf('usbfs').steps).toEqual(outcomeOf('libusb').steps);
});

test('a run through libusb, which QUEUESCOPE_USB asks for, works as ever', () => {
  const scenario = guest.scenario('run-through-libusb');
  expect(scenario.number('run')).toBe(0);
  expect(scenario.number('addon')).toBeGreaterThan(0);
  const { answered, probes, txPackets } = readRun(scenario, 'run.jsonl');
  expect(answered / probes.length).toBeGreaterThan(0.5);
  expect(txPackets).toBeGreaterThan(100);
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});
