import {
  bitRateQuantity,
  bytesQuantity,
  durationQuantity,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatShare,
  noValue,
  type Quantity,
  shareQuantity,
} from '../../src/base/units.ts';
import type { Session } from '../../src/contract/session.ts';
import { useApp } from '../app-context.ts';
import type { ArmReadings, Readings } from '../store/readings.ts';
import { hint } from '../ui/hint.tsx';

/** How far a figure is from that of the other arm. */
interface Delta {
  readonly text: string;
  readonly otherIsOn: boolean;
}

interface ReadingProps {
  readonly name: string;
  readonly meaning: string;
  readonly swatch: string;
  readonly quantity: Quantity;
  /** The figure's companion: another percentile, the other direction. */
  readonly second: string;
  readonly delta: Delta | string | undefined;
}

/** The five large figures: what is in flight, what is allowed, what it costs, what goes through, what is lost. */
export function ReadingsView({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const readings = store.readingsOf(session).value;
  const about = aboutWindow(readings);
  return (
    <section class="readings" aria-label={`Readings, ${about}`}>
      {readingsOf(readings, about).map((reading) => (
        <Reading key={reading.name} {...reading} />
      ))}
    </section>
  );
}

function Reading({ name, meaning, swatch, quantity, second, delta }: ReadingProps) {
  return (
    <div class="reading" tabIndex={0} {...hint(meaning)}>
      <span class="reading-name">
        <span class={`swatch swatch-${swatch}`} aria-hidden="true" />
        {name}
      </span>
      <span class="reading-figure">
        <span class="reading-value">{quantity.value}</span> <span class="reading-unit">{quantity.unit}</span>
      </span>
      <span class="reading-second">{second}</span>
      <span class="reading-delta">
        {typeof delta === 'object' ? (
          <>
            {delta.text} <span class="arm-word">BQL </span>
            {delta.otherIsOn ? 'on' : 'off'}
          </>
        ) : (
          (delta ?? '\u00a0')
        )}
      </span>
    </div>
  );
}

/** In place of a difference that BQL did not make. */
const otherLoad = 'other load';

const nothing: Quantity = { value: noValue, unit: '' };

function readingsOf(readings: Readings | undefined, about: string): ReadingProps[] {
  const now = readings?.now;
  const other = readings?.other;
  const against = (
    value: (arm: ArmReadings) => number,
    format: (difference: number) => string,
  ): Delta | string | undefined => {
    if (readings === undefined || now === undefined || other === undefined) return undefined;
    if (!readings.isComparable) return otherLoad;
    const difference = value(now) - value(other);
    if (Number.isNaN(difference)) return undefined;
    const text = format(Math.abs(difference));
    // What is no more than its own last digit is no difference.
    return deltaOf(text === format(0) ? 0 : difference, text, other);
  };
  return [
    {
      name: 'In flight, p50',
      meaning: `Bytes handed to the device and not yet completed: the median of ${about}.`,
      swatch: 'inflight',
      quantity: now === undefined ? nothing : bytesQuantity(now.inflightP50Bytes),
      second: `peak ${formatBytes(now?.inflightMaxBytes ?? Number.NaN)}`,
      delta: against((arm) => arm.inflightP50Bytes, formatBytes),
    },
    {
      name: 'Limit',
      meaning: `How many bytes BQL allows in flight; the figure is the newest, the median is of ${about}.`,
      swatch: 'limit',
      quantity: limitQuantity(readings),
      second:
        now?.bqlEnabled === false ? 'BQL is off' : `p50 ${formatBytes(now?.limitP50Bytes ?? Number.NaN)}`,
      delta:
        now?.bqlEnabled === false && readings !== undefined && Number.isFinite(readings.lastTxTransfers)
          ? `${formatCount(readings.lastTxTransfers)} transfers`
          : undefined,
    },
    {
      name: 'Round trip, p50',
      meaning: `The prioritised ping, p50 and p95 of ${about}; ${formatDuration(now?.driverQueueP50Us ?? Number.NaN)} of it in the driver's queue.`,
      swatch: 'round-trip',
      quantity: now === undefined ? nothing : durationQuantity(now.rttP50Us),
      second: `p95 ${formatDuration(now?.rttP95Us ?? Number.NaN)}`,
      delta: against((arm) => arm.rttP50Us, formatDuration),
    },
    {
      name: 'Rate up, mean',
      meaning: `What went through the device towards the network, the mean of ${about}; below it the other direction.`,
      swatch: 'up',
      quantity: now === undefined ? nothing : bitRateQuantity(now.txBitsPerSecond),
      second: `down ${formatBitRate(now?.rxBitsPerSecond ?? Number.NaN)}`,
      delta: readings?.isComparable === false && other !== undefined ? otherLoad : rateDelta(now, other),
    },
    {
      name: 'Loss',
      meaning: `Pings that were not answered, of those of ${about}. Packets that a full queue dropped are counted apart.`,
      swatch: 'loss',
      quantity: now === undefined || now.probeCount === 0 ? nothing : shareQuantity(lossShare(now)),
      second:
        now === undefined
          ? 'of pings'
          : `${formatCount(now.lostProbes)} of ${formatCount(now.probeCount)} pings`,
      delta: against(lossShare, formatShare),
    },
  ];
}

/** Rates are told apart by share: what matters is whether BQL costs throughput. */
function rateDelta(now: ArmReadings | undefined, other: ArmReadings | undefined): Delta | undefined {
  if (now === undefined || other === undefined) return undefined;
  const share = now.txBitsPerSecond / other.txBitsPerSecond - 1;
  if (!Number.isFinite(share)) return undefined;
  return deltaOf(Math.abs(share) < 0.01 ? 0 : share, formatShare(Math.abs(share)), other);
}

function deltaOf(difference: number, text: string, other: ArmReadings): Delta {
  return {
    text: difference === 0 ? 'same as' : `${difference < 0 ? '▼' : '▲'} ${text} vs`,
    otherIsOn: other.bqlEnabled,
  };
}

function limitQuantity(readings: Readings | undefined): Quantity {
  if (readings === undefined) return nothing;
  return readings.now.bqlEnabled ? bytesQuantity(readings.lastLimitBytes) : { value: 'none', unit: '' };
}

function lossShare(arm: ArmReadings): number {
  return arm.probeCount === 0 ? Number.NaN : arm.lostProbes / arm.probeCount;
}

/** What stretch of time the figures are about, in words. */
export function aboutWindow(readings: Readings | undefined): string {
  if (readings === undefined) return 'nothing yet';
  const { fromUs, toUs, bqlEnabled } = readings.now;
  return `the last ${Math.max(1, Math.round((toUs - fromUs) / 1e6))} s with BQL ${bqlEnabled ? 'on' : 'off'}`;
}
