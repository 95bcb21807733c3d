import { Dql } from './dql.ts';

/**
 * Replays a trace of BQL events (the format of the recorded kernel traces: JSON lines, a header and then one event a
 * line) through {@link Dql}.
 */

/** What a completion leaves behind, under the names the traces use. */
export interface DqlReplayState {
  readonly completed: number;
  readonly now: number;
  readonly limit: number;
  readonly adj_limit: number;
  readonly num_queued: number;
  readonly num_completed: number;
  readonly prev_ovlimit: number;
  readonly lowest_slack: number;
  readonly slack_start: number;
  /** Only with `stall_thrs` in the header. */
  readonly stall_cnt?: number;
  readonly stall_max?: number;
}

/** A line that cannot be replayed. */
export class ReplayError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
    this.name = 'ReplayError';
    this.line = line;
  }
}

function parseLine(text: string, line: number): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ReplayError(line, 'not a JSON document');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ReplayError(line, 'not a JSON object');
  }
  return value as Record<string, unknown>;
}

function whole(value: unknown, name: string, line: number, fallback?: number): number {
  if (value === undefined && fallback !== undefined) return fallback;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw new ReplayError(line, `"${name}" is not a whole number of at least 0`);
  }
  return value;
}

/**
 * Yields the state after each `completed` event.
 * @param lines the trace's lines; empty ones are skipped
 * @throws ReplayError with the number of the line that cannot be replayed
 */
export function* replayTrace(lines: Iterable<string>): Generator<DqlReplayState> {
  let dql: Dql | undefined;
  let line = 0;
  let lastNow = 0;
  for (const text of lines) {
    line++;
    if (text.trim() === '') continue;
    const event = parseLine(text, line);
    if (dql === undefined) {
      lastNow = whole(event['slack_start'], 'slack_start', line, 0);
      dql = new Dql({
        holdTicks: whole(event['hold_time'], 'hold_time', line),
        minLimit: whole(event['limit_min'], 'limit_min', line, 0),
        maxLimit: whole(event['limit_max'], 'limit_max', line),
        nowTicks: lastNow,
      });
      dql.setStallThreshold(whole(event['stall_thrs'], 'stall_thrs', line, 0), lastNow);
    } else if (event['queued'] !== undefined) {
      lastNow = whole(event['now'], 'now', line, lastNow);
      dql.queued(whole(event['queued'], 'queued', line), lastNow);
    } else if (event['completed'] !== undefined) {
      const count = whole(event['completed'], 'completed', line);
      const now = whole(event['now'], 'now', line);
      lastNow = now;
      if (count > dql.inflight) {
        throw new ReplayError(line, `completes ${count} bytes with only ${dql.inflight} in flight`);
      }
      dql.completed(count, now);
      yield {
        completed: count,
        now,
        limit: dql.limit,
        adj_limit: dql.adjLimit,
        num_queued: dql.numQueued,
        num_completed: dql.numCompleted,
        prev_ovlimit: dql.prevOvlimit,
        lowest_slack: dql.lowestSlack,
        slack_start: dql.slackStartTicks,
        ...(dql.stallThresholdTicks === 0 ? {} : { stall_cnt: dql.stallCount, stall_max: dql.stallMaxTicks }),
      };
    } else {
      throw new ReplayError(line, 'neither "queued" nor "completed"');
    }
  }
}
