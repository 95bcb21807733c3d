import type { Direction } from '../probes/scenario.ts';
import type { IperfSummary } from './experiment-segments.ts';

export interface IperfReport {
  /** Undefined: it did not get as far as telling. */
  readonly summary: IperfSummary | undefined;
  /** Its own words for what went wrong. */
  readonly error: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * What iperf3 wrote: one JSON document (`-J`), or one JSON object a line (`--json-stream`, from 3.17 on).
 * @param text all of it, or as far as it got
 * @param direction that it was told to send in
 */
export function readIperf(text: string, direction: Direction): IperfReport {
  const whole = objectOf(text);
  if (whole !== undefined && whole['event'] === undefined) {
    return { summary: summaryOf(child(whole, 'end'), direction), error: wordsOf(whole['error']) };
  }
  let end: Json | undefined;
  let error: string | undefined;
  for (const line of text.split('\n')) {
    const event = objectOf(line);
    if (event?.['event'] === 'end') end = child(event, 'data');
    if (event?.['event'] === 'error') error = wordsOf(event['data']);
  }
  return { summary: summaryOf(end, direction), error };
}

function objectOf(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function child(value: Json | undefined, name: string): Json | undefined {
  const found = value?.[name];
  return typeof found === 'object' && found !== null ? (found as Json) : undefined;
}

function wordsOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: Json | undefined, name: string): number | null {
  const found = value?.[name];
  return typeof found === 'number' ? found : null;
}

/** The receiving end's figure where there is one: what was sent need not have arrived. */
function summaryOf(end: Json | undefined, direction: Direction): IperfSummary | undefined {
  if (end === undefined) return undefined;
  const received = child(end, 'sum_received');
  const sent = child(end, 'sum_sent');
  const udp = child(end, 'sum');
  const sum = received ?? udp;
  const reverse = child(end, 'sum_received_bidir_reverse') ?? child(end, 'sum_bidir_reverse');
  if (sum === undefined && reverse === undefined) return undefined;
  const rate = numberOf(sum, 'bits_per_second');
  const isReverse = direction === 'down';
  return {
    upBitsPerSecond: isReverse ? null : rate,
    downBitsPerSecond: isReverse ? rate : numberOf(reverse, 'bits_per_second'),
    lostPercent: numberOf(received, 'lost_percent') ?? numberOf(udp, 'lost_percent'),
    retransmits: numberOf(sent, 'retransmits'),
  };
}
