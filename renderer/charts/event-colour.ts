import type { SessionEvent } from '../../src/contract/session.ts';
import type { ChartColours } from './colours.ts';

/** What kind of event it is, as a colour. */
export function eventColour(event: SessionEvent, colours: ChartColours): string {
  switch (event.kind) {
    case 'unplug':
    case 'error':
    case 'timeout':
    case 'halt':
    case 'recovery':
    case 'gap':
      return colours.error;
    case 'bql-on':
    case 'bql-off':
      return colours.limit;
    case 'note':
      return colours.accent;
    case 'stage':
    case 'settings':
    case 'phase':
    case 'carrier':
      return colours.faintText;
  }
}

/** Whether an event explains what the lines do, so that it is marked in the charts too. */
export function isMarked(event: SessionEvent): boolean {
  return event.kind !== 'stage' && event.kind !== 'settings' && event.kind !== 'phase';
}
