import { signal } from '@preact/signals';

export interface WindowChoice {
  readonly label: string;
  readonly words: string;
  /** Infinite: everything that is remembered. */
  readonly seconds: number;
}

export const windowChoices: readonly WindowChoice[] = [
  { label: '10 s', words: 'the last 10 seconds', seconds: 10 },
  { label: '30 s', words: 'the last 30 seconds', seconds: 30 },
  { label: '1 min', words: 'the last minute', seconds: 60 },
  { label: '5 min', words: 'the last 5 minutes', seconds: 300 },
  {
    label: 'All',
    words: 'all that this window remembers: 15 minutes at most',
    seconds: Number.POSITIVE_INFINITY,
  },
];

/** Which part of time the charts show. */
export class ViewState {
  readonly windowSeconds = signal(30);
  /**
   * Right edge of the view of each session that does not follow the newest sample: it was paused or moved to an earlier
   * time. The sessions themselves go on.
   */
  readonly frozenEnds = signal<ReadonlyMap<string, number>>(new Map());

  isFrozen(sessionId: string): boolean {
    return this.frozenEnds.value.has(sessionId);
  }

  /** @param ends sessions and the right edges they stop at, microseconds of each session */
  freeze(ends: Iterable<readonly [string, number]>): void {
    this.frozenEnds.value = new Map([...this.frozenEnds.value, ...ends]);
  }

  /** Lets the view of a session follow the newest sample again. */
  follow(sessionId: string): void {
    const rest = new Map(this.frozenEnds.value);
    rest.delete(sessionId);
    this.frozenEnds.value = rest;
  }
}

/** The lengths that a view of everything takes on, so that its axis moves in steps. */
const allSteps = [10, 20, 30, 60, 120, 300, 600, 900] as const;

/**
 * Length of the shown window, seconds. "All" is the smallest round length that holds what there is.
 * @param recordedSeconds from the first remembered sample to the right edge
 */
export function shownSeconds(windowSeconds: number, recordedSeconds: number): number {
  if (Number.isFinite(windowSeconds)) return windowSeconds;
  return allSteps.find((step) => step >= recordedSeconds) ?? 900;
}
