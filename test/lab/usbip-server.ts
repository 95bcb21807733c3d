/** `queuescope serve-usbip` on this machine, for guests: they reach it at 10.0.2.2. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { jsonLines } from '../harness/run-cli.ts';

const program = fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url));

export interface ServedDevice {
  readonly busId: string;
  readonly id: string;
  readonly name: string;
}

export interface ServerRun<Result> {
  readonly result: Result;
  /** What the server printed after its first line. */
  readonly events: readonly Record<string, unknown>[];
}

/** Runs the server while `use` runs. */
export async function served<Result>(
  use: (port: number, devices: readonly ServedDevice[], child: ChildProcess) => Promise<Result>,
  args: readonly string[] = [],
): Promise<ServerRun<Result>> {
  const child = spawn(process.execPath, [program, 'serve-usbip', '--port', '0', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  const ended = new Promise<void>((resolve) => {
    child.on('close', () => resolve());
  });
  const listening = new Promise<void>((resolve, reject) => {
    child.on('error', reject).on('close', () => reject(new Error('the server ended')));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve();
    });
  });
  try {
    await listening;
    const [first = {}] = jsonLines(output);
    const result = await use(Number(first['port']), first['devices'] as readonly ServedDevice[], child);
    child.kill('SIGINT');
    await ended;
    return { result, events: jsonLines(output).slice(1) };
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}
