import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url));

/** What a command left behind. */
export interface CliResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that is running; `ended` resolves in any case. */
export interface RunningCli {
  readonly child: ChildProcess;
  readonly ended: Promise<CliResult>;
  /** What has been printed on standard output so far. */
  stdoutSoFar(): string;
}

/**
 * Starts the command line as a user would, from the built program.
 * @param standardOutput an open file instead of what is read here
 */
export function startCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  standardOutput: 'pipe' | number = 'pipe',
): RunningCli {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', standardOutput, 'pipe'],
    env: { ...process.env, ...environment },
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode, signal) => resolve({ exitCode, signal, stdout, stderr }));
  });
  return { child, ended, stdoutSoFar: () => stdout };
}

export function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  return startCli(args, environment).ended;
}

/** The JSON documents of an output of one a line. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
