import type {
  LineProgram,
  ProgramEnd,
  ProgramListener,
  StartProgram,
} from '../../../src/observe/line-program.ts';

/** A program that a test speaks for. */
export class FakeProgram implements LineProgram {
  readonly name: string;
  readonly arguments: readonly string[];
  readonly written: string[] = [];
  isStopped = false;
  readonly #listener: ProgramListener;

  constructor(name: string, programArguments: readonly string[], listener: ProgramListener) {
    this.name = name;
    this.arguments = programArguments;
    this.#listener = listener;
  }

  write(line: string): void {
    this.written.push(line);
  }

  stop(): void {
    this.isStopped = true;
  }

  say(...lines: readonly string[]): void {
    for (const line of lines) if (!this.isStopped) this.#listener.handleLine(line);
  }

  complain(line: string): void {
    if (!this.isStopped) this.#listener.handleErrorLine(line);
  }

  end(end: Partial<ProgramEnd> = {}): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.#listener.handleEnd({ isMissing: false, exitCode: 1, lastError: '', ...end });
  }

  /** The value of an option. */
  option(name: string): string | undefined {
    const index = this.arguments.indexOf(name);
    return index < 0 ? undefined : this.arguments[index + 1];
  }
}

/** All programs that were started. */
export class FakePrograms {
  readonly started: FakeProgram[] = [];

  readonly start: StartProgram = (name, programArguments, listener) => {
    const program = new FakeProgram(name, programArguments, listener);
    this.started.push(program);
    return program;
  };

  of(name: string): readonly FakeProgram[] {
    return this.started.filter((program) => program.name === name);
  }

  /** The last one of this name; it must be there. */
  newest(name: string): FakeProgram {
    const program = this.of(name).at(-1);
    if (program === undefined) throw new Error(`${name} was not started`);
    return program;
  }
}
