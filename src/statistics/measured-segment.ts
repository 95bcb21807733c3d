/** What one segment of an experiment has shown. */
export interface MeasuredSegment {
  /** Name of the arm, such as "BQL off". */
  readonly arm: string;
  /** Segments of the two arms with the same number are neighbours in time and are compared. */
  readonly pair: number;
  readonly direction: 'idle' | 'up' | 'down' | 'both';
  /** Round trips of the deciding probe in order of sending, microseconds; lost ones are not in it. */
  readonly rttUs: Readonly<Float64Array>;
  readonly probesSent: number;
  readonly probesLost: number;
  readonly upBitsPerSecond: number | null;
  readonly downBitsPerSecond: number | null;
  /** Whether the load ever filled the queue (inflight reached the limit, or the TX queue stopped). */
  readonly loadReachedLimit: boolean;
  /** How long the segment took, settling included; lets a verdict say how much longer would be enough. */
  readonly seconds?: number;
  /** Probes that left more than 10 ms later than they were due. */
  readonly probesLate?: number;
}

/** The directions that a load can have. */
export type LoadedDirection = Exclude<MeasuredSegment['direction'], 'idle'>;
