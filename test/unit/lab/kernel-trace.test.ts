import { expect, test } from 'vitest';
import { replayTrace } from '../../../src/bql/replay.ts';
import { traceOf } from '../../lab/kernel-trace.ts';

const origin = { kernel: '7.3.4', driver: 'cdc_ether', usbSpeed: 'high', load: 'none' };

const queue = {
  nq: 0,
  last: 0,
  adj: 0,
  limit: 0,
  nc: 0,
  pov: 0,
  pnq: 0,
  plo: 0,
  ls: 4_294_967_295,
  sst: 100,
};
const freshQueue = { ...queue, max: 1_879_048_192, min: 0, hold: 250, thrs: 0, smax: 0, scnt: 0, jif: 100 };

/** What a probe prints, with values for the rest of what it shows. */
function event(probe: string, values: Readonly<Record<string, number>>): string {
  const all = { ...freshQueue, ...values };
  const words = Object.entries(all).map(([key, value]) => `${key}=${value}`);
  return ` <idle>-0  [001] ..s1.  12.5: bql_${probe}: (usbnet_bh+0x5/0x10 <- usbnet_bh_work) dev="usb0" ${words.join(' ')}`;
}

const first = { nq: 90, limit: 90, adj: 180, nc: 90, pnq: 90, plo: 90, sst: 104, jif: 105 };

test('the probes of a queue’s first packets as a trace that replays', () => {
  const text = [
    '# tracer: nop',
    event('open', {}),
    event('sent', { nq: 90, last: 90, jif: 101 }),
    event('done_usbnet_bh', first),
    event('done_usbnet_bh_work', first),
  ].join('\n');
  const [header = '', ...lines] = traceOf(text, origin, 10);
  expect(JSON.parse(header)).toMatchObject({
    kernel: 'Linux 7.3.4',
    hz: 250,
    usb_speed: 'high',
    slack_start: 100,
  });
  expect(lines).toEqual([
    '{"queued":90}',
    // The kernel's own time, which the probe was too late for; and the second look found nothing new.
    '{"completed":90,"now":104,"limit":90,"adj_limit":180,"num_queued":90,"num_completed":90,"prev_ovlimit":0,' +
      '"lowest_slack":4294967295,"slack_start":104}',
  ]);
  expect([...replayTrace([header, ...lines])].map((state) => JSON.stringify(state))).toEqual(lines.slice(1));
});

test('what another processor queued meanwhile belongs after the completion', () => {
  const text = [
    event('open', {}),
    event('sent', { nq: 90, last: 90 }),
    event('sent', { nq: 150, last: 60 }),
    event('done_usbnet_bh', first),
    event('done_usbnet_bh', { ...first, nq: 150, nc: 150, pnq: 150, plo: 60, adj: 240 }),
  ].join('\n');
  const kinds = traceOf(text, origin, 10).map((line) => /^\{"(\w+)":(\d+)/.exec(line)?.slice(1).join(' '));
  expect(kinds.slice(1)).toEqual(['queued 90', 'completed 90', 'queued 60', 'completed 60']);
});

test('an interface that was never opened leaves no trace', () => {
  expect(() => traceOf(event('sent', { nq: 90, last: 90 }), origin, 10)).toThrow(/not opened/);
});
