/**
 * Makes a trace of BQL events (the format of test/fixtures/kernel-traces) from what the kernel's probes printed
 * (peers/bql-probe.mjs).
 */

/** What the header says of where a trace comes from. */
export interface TraceOrigin {
  readonly kernel: string;
  readonly driver: string;
  /** Of USB devices. */
  readonly usbSpeed?: string;
  readonly load: string;
}

interface Reading {
  readonly probe: string;
  number(key: string): number;
}

const note =
  'one line per event after this one; now and hold_time are in the same ticks (jiffies); every completed line carries' +
  ' the state that the kernel had right after it';

function* readings(text: string): Generator<Reading> {
  for (const line of text.split('\n')) {
    const match = /: (bql_\w+): \([^)]*\) (.*)$/.exec(line);
    if (match === null) continue;
    const values = new Map((match[2] ?? '').split(' ').map((word) => word.split('=') as [string, string]));
    yield {
      probe: match[1] ?? '',
      number(key) {
        const value = Number(values.get(key));
        if (!Number.isSafeInteger(value)) throw new Error(`a probe without ${key}: ${line}`);
        return value;
      },
    };
  }
}

/**
 * The trace as JSON lines: from the interface's opening on, `mostCompletions` at most.
 * @throws where the probes have a hole: something completed that was never seen queued
 */
export function traceOf(text: string, origin: TraceOrigin, mostCompletions: number): readonly string[] {
  let start: Reading | undefined;
  const events: Reading[] = [];
  for (const reading of readings(text)) {
    if (reading.probe === 'bql_open') {
      if (start !== undefined) break;
      start = reading;
    } else if (start !== undefined) {
      events.push(reading);
    }
  }
  if (start === undefined) throw new Error('the interface was not opened in what was recorded');
  const stallThreshold = start.number('thrs');
  const lines = [
    JSON.stringify({
      kernel: `Linux ${origin.kernel}`,
      hz: start.number('hold'),
      driver: origin.driver,
      ...(origin.usbSpeed === undefined ? {} : { usb_speed: origin.usbSpeed }),
      load: origin.load,
      hold_time: start.number('hold'),
      limit_min: start.number('min'),
      limit_max: start.number('max'),
      ...(stallThreshold === 0 ? {} : { stall_thrs: stallThreshold }),
      slack_start: start.number('sst'),
      note,
    }),
  ];
  let queued = 0;
  let completed = 0;
  let slackStart = start.number('sst');
  let completions = 0;
  const noteQueued = (total: number, last: number, now: number): void => {
    const bytes = (total - queued) | 0;
    if (bytes <= 0) return;
    if (last > bytes) throw new Error(`${bytes} bytes were queued, the last ${last} of them at once`);
    for (const count of [bytes - last, last]) {
      if (count === 0) continue;
      // With stall detection it matters when something was queued.
      lines.push(JSON.stringify({ queued: count, ...(stallThreshold === 0 ? {} : { now }) }));
    }
    queued = total;
  };
  const sent: { total: number; last: number; now: number }[] = [];
  for (const event of events) {
    if (event.probe === 'bql_sent') {
      sent.push({ total: event.number('nq'), last: event.number('last'), now: event.number('jif') });
      continue;
    }
    const done = event.number('nc');
    // The driver had a look, and nothing to report.
    if (done === completed) continue;
    if (completions === mostCompletions) break;
    completions++;
    // What the kernel took into account; another processor may have queued more before it was through.
    const total = event.number('pnq');
    while (sent[0] !== undefined && ((sent[0].total - total) | 0) <= 0) {
      noteQueued(sent[0].total, sent[0].last, sent[0].now);
      sent.shift();
    }
    noteQueued(total, event.number('plo'), event.number('jif'));
    const startsAnew = event.number('sst') !== slackStart;
    slackStart = event.number('sst');
    lines.push(
      JSON.stringify({
        completed: (done - completed) >>> 0,
        // Exactly the kernel's own, where that is known.
        now: startsAnew ? slackStart : event.number('jif'),
        limit: event.number('limit'),
        adj_limit: event.number('adj'),
        num_queued: total,
        num_completed: done,
        prev_ovlimit: event.number('pov'),
        lowest_slack: event.number('ls'),
        slack_start: slackStart,
        ...(stallThreshold === 0 ? {} : { stall_cnt: event.number('scnt'), stall_max: event.number('smax') }),
      }),
    );
    completed = done;
  }
  return lines;
}
