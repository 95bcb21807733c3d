/**
 * `npm run compare -- [--rounds N] [--seconds N] [--fifo BYTES] [--out FILE]`: one simulated device on a slow link, driven by
 * the laboratory's kernel and by our stack, each with BQL off and on, in one guest and one run. Writes docs/kernel-comparison.md.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { slowDevices } from './slow-devices.ts';
import {
  type Bql,
  measureSlowLink,
  type Punctuality,
  type SlowLinkResult,
  type Stack,
  stacks,
} from './slow-link.ts';

const document = fileURLToPath(new URL('../../docs/kernel-comparison.md', import.meta.url));

/** How far our cut of the latency may be from the kernel's, and the throughput with BQL from that without. */
const cutsAlike = { least: 0.8, most: 1.25 } as const;
const throughputLoss = 0.02;
/** Of the loaded prioritised ping's p99 with BQL on, ours over the kernel's. */
const largestP99Ratio = 1.3;

const stackWords: Readonly<Record<Stack, string>> = {
  kernel: 'the kernel',
  ours: 'our stack in the guest',
  native: 'our stack natively',
};

const usage = 'usage: npm run compare -- [--rounds N] [--seconds N] [--fifo BYTES] [--out FILE]';

interface Cell {
  readonly stack: Stack;
  readonly bql: Bql;
}

const columns: readonly Cell[] = [
  { stack: 'kernel', bql: 'off' },
  { stack: 'kernel', bql: 'on' },
  { stack: 'ours', bql: 'off' },
  { stack: 'ours', bql: 'on' },
  { stack: 'native', bql: 'off' },
  { stack: 'native', bql: 'on' },
];

const names: Readonly<Record<string, string>> = {
  ecm: 'CDC ECM (`cdc_ether`)',
  ncm: 'CDC NCM (`cdc_ncm`)',
};

const bytes = (value: number): string =>
  Number.isNaN(value) ? 'none' : Math.round(value).toLocaleString('en-US');
const ratio = (value: number): string => value.toFixed(2);

interface Row {
  readonly what: string;
  readonly value: (result: SlowLinkResult) => number;
  readonly words: (value: number) => string;
  /** Whether ratios of it say something. */
  readonly ratios: boolean;
}

const rows: readonly Row[] = [
  { what: 'limit, bytes (median)', value: (each) => each.limitP50Bytes, words: bytes, ratios: false },
  { what: 'limit, least', value: (each) => each.limitMinBytes, words: bytes, ratios: false },
  { what: 'limit, most', value: (each) => each.limitMaxBytes, words: bytes, ratios: false },
  { what: 'in flight, bytes (median)', value: (each) => each.inflightP50Bytes, words: bytes, ratios: true },
  { what: 'in flight, most', value: (each) => each.inflightMaxBytes, words: bytes, ratios: true },
  { what: 'ping p50, ms', value: (each) => each.pingP50Ms, words: (ms) => ms.toFixed(1), ratios: true },
  { what: 'ping p99, ms', value: (each) => each.pingP99Ms, words: (ms) => ms.toFixed(1), ratios: true },
  { what: 'pings answered', value: (each) => each.pings, words: bytes, ratios: false },
  { what: 'pings lost', value: (each) => each.lost, words: bytes, ratios: false },
  {
    what: 'throughput, Mbit/s',
    value: (each) => each.bitsPerSecond,
    words: (rate) => (rate / 1e6).toFixed(2),
    ratios: true,
  },
];

function find(results: readonly SlowLinkResult[], device: string, { stack, bql }: Cell): SlowLinkResult {
  const found = results.find((each) => each.device === device && each.stack === stack && each.bql === bql);
  if (found === undefined) throw new Error(`nothing was measured of ${stack} on ${device} with BQL ${bql}`);
  return found;
}

function table(results: readonly SlowLinkResult[], device: string): readonly string[] {
  const cells = columns.map((cell) => find(results, device, cell));
  const head = [
    '',
    'kernel, off',
    'kernel, on',
    'ours, off',
    'ours, on',
    'ours natively, off',
    'ours natively, on',
    'kernel, off/on',
    'ours, off/on',
    'ours natively, off/on',
    'on: ours/kernel',
    'on: ours natively/kernel',
  ];
  const lines = rows.map(({ what, value, words, ratios }) => {
    const values = cells.map(value);
    const [kernelOff = 0, kernelOn = 0, oursOff = 0, oursOn = 0, nativeOff = 0, nativeOn = 0] = values;
    const relations = [
      kernelOff / kernelOn,
      oursOff / oursOn,
      nativeOff / nativeOn,
      oursOn / kernelOn,
      nativeOn / kernelOn,
    ];
    return [what, ...values.map(words), ...relations.map((each) => (ratios ? ratio(each) : ''))];
  });
  return [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...lines].map(
    (cell) => `| ${cell.join(' | ')} |`,
  );
}

interface Verdict {
  readonly words: string;
  readonly good: boolean;
}

function verdictsOf(results: readonly SlowLinkResult[], device: string): readonly Verdict[] {
  const cut = (stack: Stack): number =>
    find(results, device, { stack, bql: 'off' }).pingP50Ms /
    find(results, device, { stack, bql: 'on' }).pingP50Ms;
  const kept = (stack: Stack): number =>
    find(results, device, { stack, bql: 'on' }).bitsPerSecond /
    find(results, device, { stack, bql: 'off' }).bitsPerSecond;
  const p99 = (stack: Stack): number => find(results, device, { stack, bql: 'on' }).pingP99Ms;
  const ourStacks = ['ours', 'native'] as const;
  return [
    ...ourStacks.map((stack) => {
      const cuts = cut(stack) / cut('kernel');
      return {
        words:
          `BQL divides the median ping by ${ratio(cut('kernel'))} in the kernel and by ${ratio(cut(stack))} in ${stackWords[stack]}:` +
          ` ratio ${ratio(cuts)} (asked: ${cutsAlike.least} to ${cutsAlike.most})`,
        good: cuts >= cutsAlike.least && cuts <= cutsAlike.most,
      };
    }),
    ...stacks.map((stack) => ({
      words:
        `throughput with BQL is ${(100 * kept(stack)).toFixed(1)} % of that without` +
        ` (${stackWords[stack]}; asked: at least ${100 * (1 - throughputLoss)} %)`,
      good: kept(stack) >= 1 - throughputLoss,
    })),
    ...ourStacks.map((stack) => ({
      words:
        `with BQL the p99 of the loaded ping is ${ratio(p99(stack) / p99('kernel'))} times the kernel's` +
        ` (${stackWords[stack]}; asked: at most ${largestP99Ratio})`,
      good: p99(stack) / p99('kernel') <= largestP99Ratio,
    })),
  ];
}

interface Conditions {
  readonly rounds: number;
  readonly seconds: number;
  readonly fifoBytes: number;
  readonly kernel: string;
}

function pageOf(
  results: readonly SlowLinkResult[],
  { lateP50Us, lateP95Us, lateMaxUs }: Punctuality,
  { rounds, seconds, fifoBytes, kernel }: Conditions,
): string {
  const lines = [
    '# The kernel and our stack on the same slow device',
    '',
    `Written by \`npm run compare\` on ${new Date().toISOString().slice(0, 10)}; not by hand.`,
    '',
    'One simulated device, a USB 3 modem with 10 Mbit/s up, 12 ms each way and ' +
      `${bytes(fifoBytes)} bytes of memory between USB and the link, served over USB/IP from this machine to the laboratory's guest (Linux` +
      ` ${kernel}, emulated). There the kernel's own driver and our stack (\`queuescope run usb:…\`, through usbfs) drive it in turns,` +
      ` over the same virtual host controller (vhci-hcd) and the same network, each with BQL off and on: ${rounds} rounds of ${seconds} s each,` +
      ' under UDP load that always has a packet at hand, with a prioritised ping every 50 ms. "Off" is, for the kernel, a `limit_min` above the' +
      ' queue. Throughput is what the driver counts as sent. Our stack is measured once it has run for 20 s, so that its code is compiled.',
    '',
    '"Natively" is our stack once more, on this machine itself and after the guest has gone: `queuescope run usbip://…`, over its own USB/IP' +
      ' client to the same server and device. What it is slower by in the guest is the emulated processor.',
    '',
    'Times are those of an emulated machine: compare them with each other only. The ping of the kernel is stock ping with its own way' +
      ' through the sockets; ours is the one that `run` measures with, inside the process.',
    '',
    `The simulated device was later than it should have been by ${bytes(lateP50Us)} us (median), ${bytes(lateP95Us)} us (95th percentile),` +
      ` ${bytes(lateMaxUs)} us at most: a busy machine shows here first.`,
  ];
  for (const device of new Set(results.map((result) => result.device))) {
    lines.push('', `## ${names[device] ?? device}`, '', ...table(results, device), '');
    lines.push(
      ...verdictsOf(results, device).map(({ words, good }) => `- ${good ? 'yes' : '**no**'}: ${words}`),
    );
  }
  return `${lines.join('\n')}\n`;
}

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '15' },
      fifo: { type: 'string', default: '16384' },
      out: { type: 'string', default: document },
    },
  });
  const [rounds, seconds, fifoBytes] = [values.rounds, values.seconds, values.fifo].map(Number) as [
    number,
    number,
    number,
  ];
  if (![rounds, seconds, fifoBytes].every((value) => Number.isInteger(value) && value > 0)) {
    console.error(usage);
    return 2;
  }
  const { results, punctuality, kernel } = await measureSlowLink({
    name: 'compare',
    devices: slowDevices(fifoBytes),
    bql: ['off', 'on'],
    seconds,
    rounds,
  });
  const page = pageOf(results, punctuality, { rounds, seconds, fifoBytes, kernel });
  writeFileSync(values.out, page);
  console.log(page);
  const devices = [...new Set(results.map((result) => result.device))];
  return devices.every((device) => verdictsOf(results, device).every(({ good }) => good)) ? 0 : 1;
}
