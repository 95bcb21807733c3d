import { bootGuest, type Scenario } from '../lab/guest.ts';

/** One kind of traffic over one device, the kernel's driver beside our stack. */
export interface StreamComparison {
  readonly device: string;
  readonly stream: StreamName | 'generator';
  readonly kernelBitsPerSecond: number;
  readonly oursBitsPerSecond: number;
  /** Ours over the kernel's. */
  readonly ratio: number;
  /** Processor time of the whole guest for a megabit, both ends of the link in it; of the generator, our process's alone. */
  readonly kernelCpuMsPerMbit: number;
  readonly oursCpuMsPerMbit: number;
}

const streams = ['tcpUp', 'tcpDown', 'udpUp', 'udpDown'] as const;
type StreamName = (typeof streams)[number];

const devices = [
  { name: 'NCM at SuperSpeed', function: 'ncm', speed: 'super' },
  { name: 'ECM at high speed', function: 'ecm', speed: 'high' },
] as const;

export interface ThroughputOptions {
  readonly seconds: number;
  readonly rounds: number;
  /** Leaves CPU profiles of our processes in the guest's folder. */
  readonly profile: boolean;
  readonly functions?: readonly string[];
}

const msPerTick = 10;
const omittedSeconds = 1;
const datagramBits = 8 * 1472;

/** Boots the laboratory's guest and runs stock iperf3, in both directions, over the kernel's driver and over our TAP. */
export async function measureThroughput(options: ThroughputOptions): Promise<readonly StreamComparison[]> {
  const { seconds, rounds, profile, functions } = options;
  const chosen = devices.filter((device) => functions?.includes(device.function) ?? true);
  const row = ({ function: name, speed }: (typeof devices)[number]): string =>
    `${[name, name, speed, seconds, rounds].join('\t')}\n`;
  const guest = await bootGuest({
    name: 'bench-throughput',
    program: true,
    scriptFile: new URL('throughput.guest.sh', import.meta.url),
    files: { 'cases.tsv': chosen.map(row).join(''), ...(profile ? { profile: '1' } : {}) },
    limitSeconds: 100 + chosen.length * (100 + rounds * (9 * (seconds + 3) + 160)),
  });
  return chosen.flatMap((device) => {
    const scenario = guest.scenario(device.function);
    const compared = streams.map((stream): StreamComparison => {
      const kernel = readStream(scenario, 'kernel', stream, options);
      const ours = readStream(scenario, 'ours', stream, options);
      return {
        device: device.name,
        stream,
        kernelBitsPerSecond: kernel.bitsPerSecond,
        oursBitsPerSecond: ours.bitsPerSecond,
        ratio: ours.bitsPerSecond / kernel.bitsPerSecond,
        kernelCpuMsPerMbit: kernel.cpuMsPerMbit,
        oursCpuMsPerMbit: ours.cpuMsPerMbit,
      };
    });
    const udp = readStream(scenario, 'kernel', 'udpUp', options);
    const generator = readGenerator(scenario, options);
    return [
      ...compared,
      {
        device: device.name,
        stream: 'generator' as const,
        kernelBitsPerSecond: udp.bitsPerSecond,
        oursBitsPerSecond: generator.bitsPerSecond,
        ratio: generator.bitsPerSecond / udp.bitsPerSecond,
        kernelCpuMsPerMbit: udp.cpuMsPerMbit,
        oursCpuMsPerMbit: generator.cpuMsPerMbit,
      },
    ];
  });
}

interface IperfEnd {
  readonly end: { readonly sum_received: { readonly bits_per_second: number } };
}

interface Stream {
  readonly bitsPerSecond: number;
  readonly cpuMsPerMbit: number;
}

/** The mean of all rounds. Of UDP what arrived counts, as the receiving kernel counted it. */
function readStream(
  scenario: Scenario,
  stack: string,
  stream: StreamName,
  { rounds, seconds }: ThroughputOptions,
): Stream {
  const measuredSeconds = seconds + omittedSeconds;
  let bits = 0;
  let cpuMs = 0;
  for (let round = 1; round <= rounds; round++) {
    const name = `${stack}-${round}.${stream}`;
    cpuMs += scenario.number(`${name}.busyTicks`) * msPerTick;
    if (stream.startsWith('udp')) {
      const end = stream === 'udpUp' ? 'far' : 'near';
      bits += scenario.number(`${name}.${end}Datagrams`) * datagramBits;
    } else {
      const { sum_received: sum } = (scenario.json(`${name}.json`) as IperfEnd).end;
      bits += sum.bits_per_second * measuredSeconds;
    }
  }
  return { bitsPerSecond: bits / rounds / measuredSeconds, cpuMsPerMbit: cpuMs / (bits / 1e6) };
}

function readGenerator(scenario: Scenario, { rounds, seconds }: ThroughputOptions): Stream {
  let bits = 0;
  let cpuMs = 0;
  for (let round = 1; round <= rounds; round++) {
    bits += scenario.number(`ours-${round}.generatorDatagrams`) * datagramBits;
    cpuMs += scenario.number(`ours-${round}.generatorTicks`) * msPerTick;
  }
  return { bitsPerSecond: bits / rounds / seconds, cpuMsPerMbit: cpuMs / (bits / 1e6) };
}
