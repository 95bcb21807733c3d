/** The colours that are drawn with, from the token file; one a quantity, the same in charts, readings and legends. */
export interface ChartColours {
  readonly surface: string;
  readonly text: string;
  readonly faintText: string;
  readonly grid: string;
  readonly axis: string;
  readonly hatch: string;
  readonly error: string;
  readonly accent: string;
  readonly inflight: string;
  readonly inflightFill: string;
  readonly inflightPeakFill: string;
  readonly limit: string;
  readonly backlog: string;
  readonly roundTrip: string;
  readonly roundTripBand: string;
  readonly driverQueue: string;
  readonly driverQueueFill: string;
  readonly qdiscWait: string;
  readonly qdiscWaitFill: string;
  readonly up: string;
  readonly down: string;
}

export type ColourName = keyof ChartColours;

const tokens: Readonly<Record<ColourName, string>> = {
  surface: '--surface',
  text: '--text',
  faintText: '--text-faint',
  grid: '--grid',
  axis: '--line-strong',
  hatch: '--hatch',
  error: '--error',
  accent: '--accent',
  inflight: '--q-inflight',
  inflightFill: '--q-inflight-fill',
  inflightPeakFill: '--q-inflight-peak-fill',
  limit: '--q-limit',
  backlog: '--q-backlog',
  roundTrip: '--q-round-trip',
  roundTripBand: '--q-round-trip-band',
  driverQueue: '--q-driver-queue',
  driverQueueFill: '--q-driver-queue-fill',
  qdiscWait: '--q-qdisc-wait',
  qdiscWaitFill: '--q-qdisc-wait-fill',
  up: '--q-up',
  down: '--q-down',
};

/**
 * Reads the tokens as they are in force at an element. They may be given for light and dark in one, so each is resolved
 * by the browser itself, as the colour of an element that is never seen.
 */
export function readColours(element: Element): ChartColours {
  const probe = document.createElement('span');
  probe.hidden = true;
  element.append(probe);
  const entries = Object.entries(tokens).map(([name, token]) => {
    probe.style.color = `var(${token})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(entries) as Record<ColourName, string>;
}
