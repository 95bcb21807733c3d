import { formatBytes } from '../base/units.ts';
import { sampleIndex } from '../contract/telemetry.ts';

/** Counts what a device has sent and received, from rows of the `samples` table. */
export class DataMeter {
  #bytes = 0;
  #lastUs = Number.NaN;

  /** Sent and received together, as bytes of Ethernet frames. */
  get bytes(): number {
    return this.#bytes;
  }

  addSample(row: Float64Array): void {
    const timeUs = row[sampleIndex.timeUs] ?? 0;
    const rate = (row[sampleIndex.txBitsPerSecond] ?? 0) + (row[sampleIndex.rxBitsPerSecond] ?? 0);
    const bytes = ((timeUs - this.#lastUs) * rate) / 8e6;
    this.#lastUs = timeUs;
    // In a gap nothing is known.
    if (bytes > 0) this.#bytes += bytes;
  }
}

export function cappedWords(maxDataBytes: number): string {
  return `it ended at its cap of ${formatBytes(maxDataBytes)}`;
}
