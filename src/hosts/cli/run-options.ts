import { InvalidArgumentError } from 'commander';
import { AppError } from '../../base/errors.ts';
import {
  defaultSessionSettings,
  maxLimitBytes,
  type QdiscKind,
  qdiscKinds,
  type QdiscSettings,
  qdiscSettingsSchema,
  type SessionSettings,
} from '../../contract/settings.ts';
import { chooseTarget } from '../../engine/measurement-target.ts';
import { pingOfScenario } from '../../engine/segment-settings.ts';
import {
  type Scenario,
  type ScenarioLoad,
  scenarioSchema,
  type ScenarioText,
  scenarioVersion,
} from '../../probes/scenario.ts';
import { ipv4AddressIsHost, parseIpv4Address, parseIpv4Cidr } from '../../wire/ipv4-address.ts';
import { usageError } from './output.ts';
import { loadScenario } from './scenarios.ts';

/** What `queuescope run` was given. */
export interface RunOptions {
  readonly device: string;
  readonly scenario?: string;
  readonly bql?: 'on' | 'off' | 'ab';
  readonly duration?: number;
  readonly idle?: number;
  readonly out?: string;
  readonly tap?: string;
  /** Virtual devices: a TAP interface at the far end of the link, and the network namespace that it is moved to. */
  readonly configuration?: number;
  readonly farTap?: string;
  readonly farNetns?: string;
  readonly address?: string;
  readonly gateway?: string;
  readonly target?: string;
  /** False: no load at all (`--no-load`). */
  readonly load: boolean;
  readonly loadRate?: number;
  readonly loadPayload?: number;
  readonly pingInterval?: number;
  /** Bytes that may be sent and received together. */
  readonly maxData?: number;
  readonly qdisc?: QdiscOption;
  readonly limitMin?: number;
  readonly limitMax?: number;
  readonly holdTime?: number;
  readonly sampleRate?: number;
  /** Seconds that a device which goes away is waited for. */
  readonly wait?: number;
  readonly json: boolean;
}

const defaultDurationSeconds = 10;
/** Of an A/B run this share is spent idle first, for the round trip to compare with. */
const idleShare = 0.1;

/** A parser for commander: a whole number within bounds. */
export function wholeNumber(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isInteger(value) || value < low || value > high) {
      throw new InvalidArgumentError(`it must be a whole number from ${low} to ${high}.`);
    }
    return value;
  };
}

/** A parser for commander: a number within bounds. */
export function numberWithin(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value) || value < low || value > high) {
      throw new InvalidArgumentError(`it must be a number from ${low} to ${high}.`);
    }
    return value;
  };
}

/** A parser for commander: bits per second, with an optional k, M or G ("10M" is 10,000,000). */
export function bitRate(text: string): number {
  const match = /^([0-9]+(?:\.[0-9]+)?)([kKMG]?)$/.exec(text.trim());
  const factor = { '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9 }[match?.[2] ?? ''] ?? 1;
  const value = Number(match?.[1] ?? Number.NaN) * factor;
  if (!Number.isFinite(value) || value > 20e9) {
    throw new InvalidArgumentError('it must be bits per second, like 5000000 or 5M, at most 20G.');
  }
  return value;
}

/** A parser for commander: bytes, with an optional kB, MB or GB ("200MB" is 200,000,000). */
export function byteCount(text: string): number {
  const match = /^([0-9]+(?:\.[0-9]+)?) ?(B|kB|KB|MB|GB|TB)?$/.exec(text.trim());
  const factor = { B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 }[match?.[2] ?? 'B'] ?? 1;
  const value = Math.floor(Number(match?.[1] ?? Number.NaN) * factor);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError('it must be bytes, like 200MB or 2GB.');
  }
  return value;
}

/** A parser for commander: bytes of a limit, or "max" as in sysfs. */
export function limitBytes(text: string): number {
  return text === 'max' ? maxLimitBytes : wholeNumber(0, maxLimitBytes)(text);
}

/** A qdisc by name, with what is to be other than usual. */
export type QdiscOption = Partial<QdiscSettings> & { readonly kind: QdiscKind };

const timeFactors: Readonly<Record<string, number>> = { us: 1, ms: 1e3, s: 1e6 };

/** As tc writes a time: a number of microseconds, or with a unit. */
function timeUs(text: string): number {
  const match = /^([0-9]+(?:\.[0-9]+)?)(us|ms|s)?$/.exec(text);
  return Math.round(Number(match?.[1] ?? Number.NaN) * (timeFactors[match?.[2] ?? 'us'] ?? Number.NaN));
}

/** fq_codel's options by tc's names. */
const qdiscWords: Readonly<Record<string, (value: string) => Partial<QdiscSettings>>> = {
  target: (value) => ({ targetUs: timeUs(value) }),
  interval: (value) => ({ intervalUs: timeUs(value) }),
  limit: (value) => ({ limitPackets: Number(value) }),
  flows: (value) => ({ flows: Number(value) }),
  quantum: (value) => ({ quantumBytes: Number(value) }),
};

/** A parser for commander: a qdisc as tc takes it, like "fq_codel" or "fq_codel target 10ms noecn". */
export function qdiscOption(text: string): QdiscOption {
  const [name = '', ...words] = text.trim().split(/\s+/);
  const kind = qdiscKinds.find((known) => known === name);
  if (kind === undefined) throw new InvalidArgumentError(`it must be one of ${qdiscKinds.join(', ')}.`);
  if (words.length > 0 && kind !== 'fq_codel') throw new InvalidArgumentError(`${kind} has no options.`);
  let changes: Partial<QdiscSettings> = {};
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const isSwitch = word === 'ecn' || word === 'noecn';
    const option = qdiscWords[word];
    if (isSwitch) changes = { ...changes, ecn: word === 'ecn' };
    else if (option !== undefined) changes = { ...changes, ...option(words[++i] ?? '') };
    else throw new InvalidArgumentError(`fq_codel has no option "${word}".`);
  }
  const checked = qdiscSettingsSchema.partial().safeParse(changes);
  if (checked.success) return { ...changes, kind };
  const [issue] = checked.error.issues;
  throw new InvalidArgumentError(`${issue?.path.join('.') ?? name}: ${issue?.message ?? 'not a value'}.`);
}

/** A host's address as an option has it. @throws AppError `usage` */
export function hostAddressOf(name: string, text: string): number {
  const address = parseIpv4Address(text);
  if (address === undefined) {
    throw usageError(`${name} ${text}: it must be an IPv4 address, like 10.9.0.1`);
  }
  if (!ipv4AddressIsHost(address)) throw usageError(`${name} ${text}: it is not the address of a host`);
  return address;
}

/** @throws AppError `usage` */
function checkAddresses({ address, gateway, target }: RunOptions): void {
  const gatewayAddress = gateway === undefined ? undefined : hostAddressOf('--gateway', gateway);
  if (target !== undefined) hostAddressOf('--target', target);
  if (address === undefined) {
    if (gateway === undefined) return;
    throw usageError('--gateway is for an address set by hand (--address); by DHCP the server names it');
  }
  const cidr = parseIpv4Cidr(address);
  if (cidr === undefined) {
    throw usageError(`--address ${address}: it must be an address with a prefix length, like 10.9.0.2/24`);
  }
  if (!ipv4AddressIsHost(cidr.address)) {
    throw usageError(`--address ${address}: it is not the address of a host`);
  }
  if (gateway === undefined && target === undefined) {
    throw usageError('with --address, name a host to measure against too: --target or --gateway');
  }
  const { reason } = chooseTarget(target, { ...cidr, gateway: gatewayAddress });
  if (reason !== undefined) throw usageError(`nothing would be measured: ${reason}`);
}

/** @throws AppError `usage` for addresses that are none, or options that contradict each other */
export function settingsOf(options: RunOptions, scenario: Scenario): SessionSettings {
  checkAddresses(options);
  const { address, gateway, target } = options;
  if (options.farTap !== undefined && !options.device.startsWith('sim:')) {
    throw usageError('--far-tap is for virtual devices (sim:…): those have a link whose far end is at hand');
  }
  if (options.farNetns !== undefined && options.farTap === undefined) {
    throw usageError('--far-netns says where the interface of --far-tap goes: name that, too');
  }
  const { limitMin = 0, limitMax = maxLimitBytes } = options;
  if (limitMin > limitMax) throw usageError('--limit-min is larger than --limit-max');

  const base = defaultSessionSettings;
  return {
    bql: {
      enabled: scenario.arms[0]?.bql.enabled ?? true,
      limitMinBytes: limitMin,
      limitMaxBytes: limitMax,
      holdTimeMs: options.holdTime ?? base.bql.holdTimeMs,
    },
    qdisc: { ...base.qdisc, ...options.qdisc },
    load: { ...base.load, enabled: false },
    ping: pingOfScenario(scenario, base.ping),
    address:
      address === undefined
        ? { mode: 'dhcp' }
        : { mode: 'static', cidr: address, ...(gateway === undefined ? {} : { gateway }) },
    ...(target === undefined ? {} : { target }),
    sampleRateHz: options.sampleRate ?? base.sampleRateHz,
    ...(options.configuration === undefined ? {} : { configuration: options.configuration }),
    ...(options.tap === undefined ? {} : { tap: options.tap }),
    ...(options.farTap === undefined ? {} : { farTap: options.farTap }),
    ...(options.farNetns === undefined ? {} : { farNamespace: options.farNetns }),
  };
}

/** The scenario that the options name, or the one that they describe. */
export function scenarioOf(options: RunOptions): Scenario {
  if (options.scenario !== undefined) {
    const given = (['bql', 'duration', 'idle'] as const).find((name) => options[name] !== undefined);
    if (given !== undefined) {
      throw new AppError(
        'usage',
        `--${given} and --scenario contradict each other: the scenario has its own`,
      );
    }
    return withProbes(loadScenario(options.scenario), options);
  }
  const { bql = 'on', duration = defaultDurationSeconds } = options;
  const idleSeconds = options.idle ?? (bql === 'ab' ? duration * idleShare : 0);
  const loadSeconds = bql === 'ab' ? (duration - idleSeconds) / 2 : duration - idleSeconds;
  if (loadSeconds <= 0) throw usageError('--idle leaves no time for the load: it is part of --duration');
  const arms = bql === 'ab' ? (['off', 'on'] as const) : ([bql] as const);
  const { ping, load } = defaultSessionSettings;
  return withProbes(
    scenarioSchema.parse({
      version: scenarioVersion,
      name: bql === 'ab' ? 'run-ab' : 'run',
      idleBeforeSeconds: idleSeconds,
      settleSeconds: Math.min(2, loadSeconds / 4),
      arms: arms.map((arm) => ({ name: `BQL ${arm}`, bql: { enabled: arm === 'on' } })),
      phases: [{ direction: 'up', seconds: loadSeconds }],
      load: { payloadBytes: load.payloadBytes },
      probes: [{ intervalMs: ping.intervalMs, payloadBytes: ping.payloadBytes }],
    } satisfies ScenarioText),
    options,
  );
}

/** What the options have in other words than the scenario. */
function withProbes(scenario: Scenario, options: RunOptions): Scenario {
  const { loadRate, loadPayload, pingInterval, maxData } = options;
  const load = (own: ScenarioLoad): ScenarioLoad => ({
    ...own,
    rateBitsPerSecond: loadRate ?? own.rateBitsPerSecond,
    payloadBytes: loadPayload ?? own.payloadBytes,
  });
  return {
    ...scenario,
    load: load(scenario.load),
    phases: scenario.phases.map((phase) => ({
      ...phase,
      ...(phase.load === undefined ? {} : { load: load(phase.load) }),
    })),
    probes: scenario.probes.map((probe) => ({ ...probe, intervalMs: pingInterval ?? probe.intervalMs })),
    ...(maxData === undefined ? {} : { maxDataBytes: Math.min(maxData, scenario.maxDataBytes ?? maxData) }),
  };
}
