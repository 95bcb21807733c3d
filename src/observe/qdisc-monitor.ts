import type { LineProgram, ProgramEnd, StartProgram } from './line-program.ts';

/** What the root qdisc of an interface says of itself; sums over its children, as tc shows them. */
export interface QdiscReading {
  /** `pfifo_fast`, `fq_codel`, `mq`, `noqueue`, … */
  readonly kind: string;
  readonly backlogBytes: number;
  readonly backlogPackets: number;
  /** Since the qdisc was made. */
  readonly droppedPackets: number;
  /** Packets marked in place of being dropped, and flows with something waiting; NaN: the qdisc knows of no such thing. */
  readonly markedPackets: number;
  readonly flows: number;
  readonly requeues: number;
}

/** Unanswered for so long: the question is asked again. */
const answerLimitUs = 2_000_000;
/** After so many questions without an answer tc is taken for one that cannot answer while it runs. */
const unansweredLimit = 3;
/** An answer of this length costs about as much as a sample; longer ones (many queues) are asked for less often. */
const usualAnswerBytes = 4096;

export interface QdiscMonitorOptions {
  readonly netdev: string;
  readonly start: StartProgram;
  /** Lets what comes from outside act at the present time. */
  readonly run: (action: (nowUs: number) => void) => void;
  /** At most one question in this time. */
  readonly intervalUs: number;
  readonly handleKind: (kind: string) => void;
  /** There will be no (more) answers; why, in one sentence, and what to do about it. */
  readonly handleFailure: (message: string, remedy: string | undefined) => void;
}

/**
 * Asks the kernel for an interface's qdisc through one `tc` that runs all the time and reads its commands from a pipe:
 * some fifty microseconds a question, where a program of its own for each would cost a hundred times as much. (sysfs
 * knows nothing of qdiscs, and sockets of the kind that do are not to be had from Node.)
 */
export class QdiscMonitor {
  readonly #options: QdiscMonitorOptions;
  #program: LineProgram | undefined;
  #latest: QdiscReading | undefined;
  #askedAtUs = Number.NEGATIVE_INFINITY;
  #isWaiting = false;
  #unanswered = 0;
  #costFactor = 1;
  #isClosed = false;

  constructor(options: QdiscMonitorOptions) {
    this.#options = options;
  }

  /** The newest answer; undefined before the first, and after a failure. */
  get latest(): QdiscReading | undefined {
    return this.#latest;
  }

  /** To be called shortly before an answer is wanted; asks, if the last question was answered and long enough ago. */
  request(nowUs: number): void {
    if (this.#isClosed) return;
    const { intervalUs, netdev, start, run } = this.#options;
    const waitedUs = nowUs - this.#askedAtUs;
    if (this.#isWaiting) {
      if (waitedUs < answerLimitUs) return;
      if (++this.#unanswered === unansweredLimit) {
        this.#fail('tc does not answer questions one by one.', 'A newer iproute2 does.');
        return;
      }
    } else if (waitedUs < intervalUs * this.#costFactor) {
      return;
    }
    // Whatever it is asked for that is not there any more, it goes on.
    this.#program ??= start('tc', ['-s', '-j', '-force', '-batch', '-'], {
      handleLine: (line) => run(() => this.#handleAnswer(line)),
      handleErrorLine: () => {},
      handleEnd: (end) => run(() => this.#handleEnd(end)),
    });
    this.#isWaiting = true;
    this.#askedAtUs = nowUs;
    this.#program.write(`qdisc show dev ${netdev}`);
  }

  #handleAnswer(line: string): void {
    // Each answer is a list, on a line of its own.
    if (this.#isClosed || !line.startsWith('[')) return;
    const kindBefore = this.#latest?.kind;
    this.#isWaiting = false;
    this.#unanswered = 0;
    this.#costFactor = Math.ceil(line.length / usualAnswerBytes);
    this.#latest = parseRootQdisc(line);
    const { kind } = this.#latest ?? {};
    if (kind !== undefined && kind !== kindBefore) this.#options.handleKind(kind);
  }

  #handleEnd({ isMissing, lastError }: ProgramEnd): void {
    if (this.#isClosed) return;
    if (isMissing) this.#fail('The program tc is missing.', 'Install it:\nsudo apt-get install iproute2');
    else this.#fail(`tc ended${lastError === '' ? '' : `: ${lastError}`}.`, undefined);
  }

  #fail(message: string, remedy: string | undefined): void {
    this.close();
    this.#options.handleFailure(message, remedy);
  }

  close(): void {
    this.#isClosed = true;
    this.#latest = undefined;
    this.#program?.stop();
    this.#program = undefined;
  }
}

/** Finds the root qdisc in a line of `tc -s -j qdisc show`. Undefined: it is no such line, or there is none. */
export function parseRootQdisc(line: string): QdiscReading | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  for (const entry of parsed as readonly unknown[]) {
    if (typeof entry !== 'object' || entry === null) continue;
    const qdisc = entry as Readonly<Record<string, unknown>>;
    const kind = qdisc['kind'];
    if (qdisc['root'] !== true || typeof kind !== 'string') continue;
    const number = (key: string): number => {
      const value = qdisc[key];
      return typeof value === 'number' ? value : Number.NaN;
    };
    return {
      kind,
      backlogBytes: number('backlog'),
      backlogPackets: number('qlen'),
      droppedPackets: number('drops'),
      markedPackets: number('ecn_mark'),
      flows: number('new_flows_len') + number('old_flows_len'),
      requeues: number('requeues'),
    };
  }
  return undefined;
}
