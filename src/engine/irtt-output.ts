import { percentileOfSorted } from '../base/percentile.ts';
import type { IrttSummary } from './experiment-segments.ts';

const nsPerUs = 1000;

interface RoundTrip {
  readonly lost?: unknown;
  readonly delay?: { readonly rtt?: unknown; readonly send?: unknown; readonly receive?: unknown };
}

/** What an irtt client wrote (`-o -`): its JSON document, maybe with words of its own before it. Undefined: it is not there. */
export function readIrtt(text: string): IrttSummary | undefined {
  const start = text.indexOf('{');
  if (start < 0) return undefined;
  let document: unknown;
  try {
    document = JSON.parse(text.slice(start));
  } catch {
    return undefined;
  }
  if (typeof document !== 'object' || document === null) return undefined;
  const { stats, round_trips: trips } = document as { stats?: unknown; round_trips?: unknown };
  if (typeof stats !== 'object' || stats === null || !Array.isArray(trips)) return undefined;
  const figure = (name: string): number | null => {
    const value = (stats as Record<string, unknown>)[name];
    return typeof value === 'number' ? value : null;
  };
  const column = (name: 'rtt' | 'send' | 'receive'): Float64Array =>
    Float64Array.from(
      (trips as readonly RoundTrip[]).flatMap(({ delay }) => {
        const ns = delay?.[name];
        return typeof ns === 'number' ? [ns / nsPerUs] : [];
      }),
    ).sort();
  const rtt = column('rtt');
  return {
    sent: figure('packets_sent') ?? 0,
    received: figure('packets_received') ?? 0,
    rttP50Us: at(rtt, 0.5),
    rttP95Us: at(rtt, 0.95),
    rttP99Us: at(rtt, 0.99),
    upDelayP50Us: at(column('send'), 0.5),
    downDelayP50Us: at(column('receive'), 0.5),
    upLossPercent: figure('upstream_loss_percent'),
    downLossPercent: figure('downstream_loss_percent'),
  };
}

function at(sorted: Float64Array, p: number): number | null {
  const value = percentileOfSorted(sorted, sorted.length, p);
  return Number.isNaN(value) ? null : value;
}
