import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { codeOf } from './number-file.ts';

/** How a program ended. */
export interface ProgramEnd {
  /** There is no such program on this machine. */
  readonly isMissing: boolean;
  readonly exitCode: number | null;
  /** The last line that it wrote to its standard error; empty if there is none. */
  readonly lastError: string;
}

/** Who is told what a program says. Nothing comes after its end, and nothing after it was stopped. */
export interface ProgramListener {
  handleLine(line: string): void;
  handleErrorLine(line: string): void;
  handleEnd(end: ProgramEnd): void;
}

/** A program that runs and speaks in lines. */
export interface LineProgram {
  /** Sends it a line on its standard input; nothing happens if it does not listen any more. */
  write(line: string): void;
  /** Ends it. Its listener hears no more of it. */
  stop(): void;
}

export type StartProgram = (
  name: string,
  programArguments: readonly string[],
  listener: ProgramListener,
) => LineProgram;

/** A line that is longer than this is cut: no program that is used here writes one. */
const longestLine = 1_000_000;
/** Where Debian keeps the administrator's programs; they are not on everyone's PATH. */
export const moreFolders = '/usr/sbin:/sbin';

/** Takes text in pieces and hands on whole lines, without their ends. */
export class LineSplitter {
  readonly #handle: (line: string) => void;
  #rest = '';

  constructor(handle: (line: string) => void) {
    this.#handle = handle;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, longestLine);
    for (const line of lines) this.#handle(line);
  }

  /** The last line may lack its end. */
  finish(): void {
    if (this.#rest !== '') this.#handle(this.#rest);
    this.#rest = '';
  }
}

/** Starts a program of this machine, its words in English. */
export const startLineProgram: StartProgram = (name, programArguments, listener) => {
  const child = spawn(name, programArguments, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      ...process.env,
      LC_ALL: 'C',
      PATH: [process.env['PATH'], moreFolders].filter(Boolean).join(':'),
    },
  });
  asUsual(child.pid);
  let isOver = false;
  let lastError = '';
  const lines = new LineSplitter((line) => {
    if (!isOver) listener.handleLine(line);
  });
  const errors = new LineSplitter((line) => {
    if (isOver || line.trim() === '') return;
    lastError = line.trim();
    listener.handleErrorLine(lastError);
  });
  const end = (isMissing: boolean, exitCode: number | null): void => {
    lines.finish();
    errors.finish();
    if (isOver) return;
    isOver = true;
    listener.handleEnd({ isMissing, exitCode, lastError });
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  // A program that has ended closes its input; the end itself is told by "close".
  child.stdin.on('error', () => {});
  child.on('error', (error) => {
    if (lastError === '') lastError = error.message;
    end(codeOf(error) === 'ENOENT', null);
  });
  child.on('close', (exitCode) => end(false, exitCode));
  return {
    write: (line) => {
      if (!isOver && child.stdin.writable) child.stdin.write(`${line}\n`);
    },
    stop: () => {
      isOver = true;
      child.stdin.end();
      child.kill();
    },
  };
};

/** Programs are started by a thread whose priority may be raised, and are not to have that of it. */
function asUsual(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_NORMAL);
  } catch {
    // It has ended already, or was lower, which only the administrator changes.
  }
}

/** What a program that runs to its end has written. */
export interface ProgramOutput {
  readonly isMissing: boolean;
  readonly exitCode: number | null;
  readonly lines: readonly string[];
}

/** Runs a program to its end, or until `limitMs` is over (then with the exit code null). */
export function runProgram(
  start: StartProgram,
  name: string,
  programArguments: readonly string[],
  limitMs: number,
): Promise<ProgramOutput> {
  return new Promise((resolve) => {
    const lines: string[] = [];
    const timer = setTimeout(() => {
      program.stop();
      resolve({ isMissing: false, exitCode: null, lines });
    }, limitMs);
    const program = start(name, programArguments, {
      handleLine: (line) => lines.push(line),
      handleErrorLine: () => {},
      handleEnd: ({ isMissing, exitCode }) => {
        clearTimeout(timer);
        resolve({ isMissing, exitCode, lines });
      },
    });
  });
}
