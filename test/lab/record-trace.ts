/**
 * `npm run record-trace -- [NAME...] [--out FOLDER]`: records traces of Byte Queue Limits from the laboratory's kernel, in
 * the format of test/fixtures/kernel-traces, and replays each through our DQL. Without names: all of `cases`. One more case
 * is one more row. Ends with 1 where a trace does not replay to the last bit.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replayTrace } from '../../src/bql/replay.ts';
import { bootGuest, type GuestRun } from './guest.ts';
import { traceOf } from './kernel-trace.ts';
import { served } from './usbip-server.ts';

interface TraceCase {
  /** The file's name, and a word that says what is recorded. */
  readonly name: string;
  /** As record-trace.guest.sh lists them. */
  readonly device: string;
  readonly speed?: 'super' | 'high' | 'full';
  readonly load:
    'iperf3-tcp-up' | 'iperf3-tcp-bidir' | 'iperf3-udp-up' | 'tcp-up' | 'udp-flood' | 'udp-bursts';
  readonly seconds: number;
  /** `stall_thrs`; the virtual device stands still for a while now and then. */
  readonly stallThresholdMs?: number;
}

const slowModem = 'served 1-1 Queuescope virtual modem';

const cases: readonly TraceCase[] = [
  { name: 'rndis-super-tcp', device: 'rndis', speed: 'super', load: 'iperf3-tcp-up', seconds: 6 },
  { name: 'eem-hs-tcp', device: 'eem', speed: 'high', load: 'iperf3-tcp-up', seconds: 6 },
  { name: 'ncm-hs-udp', device: 'ncm', speed: 'high', load: 'iperf3-udp-up', seconds: 6 },
  { name: 'ecm-super-bidir', device: 'ecm', speed: 'super', load: 'iperf3-tcp-bidir', seconds: 6 },
  { name: 'virtio-net-tcp', device: 'virtio', load: 'tcp-up', seconds: 5 },
  { name: 'e1000e-udp-bursts', device: 'e1000e', load: 'udp-bursts', seconds: 4 },
  { name: 'ecm-slow-link-udp', device: slowModem, speed: 'super', load: 'udp-flood', seconds: 6 },
  {
    name: 'ecm-slow-link-stalls',
    device: slowModem,
    speed: 'super',
    load: 'udp-bursts',
    seconds: 6,
    stallThresholdMs: 60,
  },
];

/** Longer traces prove no more, and are kept in the repository. */
const mostCompletions = 1000;
/** For so long the virtual devices stand still, so often. */
const pauseMs = 250;
const pauseEveryMs = 1500;
const fixtures = fileURLToPath(new URL('../fixtures/kernel-traces', import.meta.url));

/** Where the cards' guests send to: takes whatever comes. */
async function withSink<Result>(use: (port: number) => Promise<Result>): Promise<Result> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy()).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

function boot(chosen: readonly TraceCase[]): Promise<GuestRun> {
  return withSink(async (sink) => {
    const { result } = await served(async (port, _devices, server) => {
      const pauses = setInterval(() => {
        if (!chosen.some(({ stallThresholdMs = 0 }) => stallThresholdMs > 0)) return;
        server.kill('SIGSTOP');
        setTimeout(() => server.kill('SIGCONT'), pauseMs);
      }, pauseEveryMs);
      try {
        return await bootGuest({
          name: 'record-trace',
          network: true,
          scriptFile: new URL('record-trace.guest.sh', import.meta.url),
          files: { port: String(port), sink: String(sink), 'cases.tsv': chosen.map(tableRow).join('') },
          qemuArguments: [
            '-netdev',
            'user,id=card,net=10.0.4.0/24',
            '-device',
            'e1000e,netdev=card,romfile=',
          ],
          limitSeconds: 120 + 30 * chosen.length,
        });
      } finally {
        clearInterval(pauses);
        server.kill('SIGCONT');
      }
    });
    return result;
  });
}

function tableRow({ name, device, speed, load, seconds, stallThresholdMs = 0 }: TraceCase): string {
  return `${[name, device, speed ?? '-', load, seconds, stallThresholdMs].join('\t')}\n`;
}

/** Writes the trace; answers with what is to be said of it, and whether it replayed as it is. */
function keep(guest: GuestRun, each: TraceCase, folder: string): { words: string; same: boolean } {
  const scenario = guest.scenario(each.name);
  const lost = scenario.number('missed') + scenario.number('overrun');
  const lines = traceOf(
    scenario.text('trace.txt'),
    {
      kernel: scenario.fact('kernel').replace(/[+-].*$/, ''),
      driver: scenario.fact('driver'),
      ...(each.speed === undefined ? {} : { usbSpeed: each.speed }),
      load: each.load,
    },
    mostCompletions,
  );
  const file = join(folder, `${each.name}.jsonl`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const recorded = lines.filter((line) => line.startsWith('{"completed"'));
  const limits = new Set(recorded.map((line) => (JSON.parse(line) as { limit: number }).limit));
  const words = `${each.name}: ${recorded.length} completions, ${limits.size} limits, ${lost} events missed`;
  let at = 0;
  try {
    for (const state of replayTrace(lines)) {
      if (JSON.stringify(state) !== recorded[at]) {
        return {
          words: `${words}; NOT the same at completion ${at + 1}:\n  ${recorded[at]}\n  ${JSON.stringify(state)}`,
          same: false,
        };
      }
      at++;
    }
  } catch (error) {
    return { words: `${words}; cannot be replayed: ${String(error)}`, same: false };
  }
  return { words: `${words}; replays to the last bit`, same: at === recorded.length && at > 0 };
}

export async function main(args: readonly string[]): Promise<number> {
  const names = args.filter((arg, i) => !arg.startsWith('--') && args[i - 1] !== '--out');
  const outIndex = args.indexOf('--out');
  const folder = outIndex < 0 ? fixtures : (args[outIndex + 1] ?? fixtures);
  const unknown = names.filter((name) => !cases.some((each) => each.name === name));
  if (unknown.length > 0) {
    console.error(`There is no ${unknown.join(', ')}, but ${cases.map(({ name }) => name).join(', ')}.`);
    return 2;
  }
  const chosen = names.length === 0 ? cases : cases.filter(({ name }) => names.includes(name));
  mkdirSync(folder, { recursive: true });
  const guest = await boot(chosen);
  let good = true;
  for (const each of chosen) {
    try {
      const { words, same } = keep(guest, each, folder);
      console.log(words);
      good &&= same;
    } catch (error) {
      console.log(`${each.name}: ${error instanceof Error ? error.message : String(error)}`);
      good = false;
    }
  }
  return good ? 0 : 1;
}
