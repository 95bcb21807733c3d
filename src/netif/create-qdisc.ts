import { Fifo } from './fifo.ts';
import { defaultFqCodelSettings, FqCodel, type FqCodelSettings, hashClassifier } from './fq-codel.ts';
import { defaultTxQueueLength, PfifoFast } from './pfifo-fast.ts';
import type { Qdisc, QdiscName } from './qdisc.ts';

/** Which qdisc an interface has; what is left out is Linux's default. */
export interface QdiscSettings {
  readonly name: QdiscName;
  /** For fq_codel. */
  readonly fqCodel?: Partial<FqCodelSettings>;
}

/**
 * A qdisc, empty.
 * @param seed of the hash that tells fq_codel's flows apart
 */
export function createQdisc(settings: QdiscSettings, seed = 0): Qdisc {
  switch (settings.name) {
    case 'pfifo_fast':
      return new PfifoFast();
    case 'pfifo':
      return new Fifo(defaultTxQueueLength);
    case 'fq_codel':
      return new FqCodel({ ...defaultFqCodelSettings, ...settings.fqCodel }, hashClassifier(seed));
  }
}
