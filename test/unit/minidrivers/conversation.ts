import { silentLog } from '../../../src/base/log.ts';
import { Random } from '../../../src/base/random.ts';
import type {
  BindContext,
  DriverBinding,
  DriverHooks,
  Match,
  MinidriverName,
} from '../../../src/usbnet/minidriver.ts';
import type { Packet } from '../../../src/usbnet/packet.ts';
import type { Procedure, ProcedureStep } from '../../../src/usbnet/procedure.ts';
import { UsbnetStats } from '../../../src/usbnet/stats.ts';
import { Transfer, type TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest, RequestResult, UsbDevice } from '../../../src/usbnet/transport.ts';
import type {
  AltSetting,
  ConfigurationDescriptor,
  DeviceDescriptor,
} from '../../../src/wire/usb-descriptor.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';

/** What a device answers to a request: bytes as hexadecimal digits or as such, or how it fails. */
export type Answer = Uint8Array | { readonly hex: string } | TransferStatus;

export interface Conversation<T> {
  /** What was asked, in words: see {@link describeStep}. */
  readonly steps: readonly string[];
  readonly value: T | undefined;
  readonly error: unknown;
}

const noData = new Uint8Array(0);

function resultOf(answer: Answer): RequestResult {
  if (typeof answer === 'string') return { status: answer, data: noData };
  return { status: 'completed', data: answer instanceof Uint8Array ? answer : bytesOf(answer.hex) };
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** "21 43 000c 0000", with the data behind it, or "<28" where as many bytes are asked for. */
export function describeStep(step: ProcedureStep): string {
  switch (step.kind) {
    case 'control-in':
    case 'control-out': {
      const setup = [
        hex(step.requestType, 2),
        hex(step.request, 2),
        hex(step.value, 4),
        hex(step.index, 4),
      ].join(' ');
      if (step.kind === 'control-in') return `${setup} <${step.length}`;
      const data = [...step.data].map((byte) => hex(byte, 2)).join(' ');
      return data === '' ? setup : `${setup} : ${data}`;
    }
    case 'set-interface':
      return `interface ${step.interfaceNumber} alt ${step.alternateSetting}`;
    case 'sleep':
      return `sleep ${step.us}`;
    default:
      return step.kind;
  }
}

/** Carries out a procedure with a device that answers at once. */
export function converse<T>(
  procedure: Procedure<T>,
  answer: (request: DeviceRequest, words: string) => Answer,
): Conversation<T> {
  const steps: string[] = [];
  let result: RequestResult = { status: 'completed', data: noData };
  try {
    for (;;) {
      const step = procedure.next(result);
      if (step.done === true) return { steps, value: step.value, error: undefined };
      const words = describeStep(step.value);
      steps.push(words);
      result = step.value.kind === 'sleep' ? resultOf('completed') : resultOf(answer(step.value, words));
    }
  } catch (error) {
    return { steps, value: undefined, error };
  }
}

// ---- a CDC device, made by hand ----

export const functional = {
  header: '05 24 00 10 01',
  union: '05 24 06 00 01',
  swappedUnion: '05 24 06 01 00',
  /** String 4 is the MAC address; wMaxSegmentSize 1514. */
  ethernet: '0d 24 0f 04 00000000 ea05 0000 00',
  /** No capabilities. */
  ncm: '06 24 1a 00 01 00',
} as const;

export interface CdcShape {
  readonly subclass: 0x06 | 0x0d;
  /** Functional descriptors of the control interface, behind its endpoint, and of the configuration. */
  readonly extra?: string;
  readonly behindEndpoint?: string;
  readonly ofConfiguration?: string;
  /** Packet size and interval of the interrupt endpoint; undefined: there is none. */
  readonly interrupt?: readonly [number, number] | undefined;
  readonly maxPacket?: number;
  readonly settings?: readonly AltSetting[];
  readonly associations?: ConfigurationDescriptor['associations'];
  readonly descriptor?: Partial<DeviceDescriptor>;
}

const usual: Readonly<Record<CdcShape['subclass'], string>> = {
  0x06: [functional.header, functional.union, functional.ethernet].join(' '),
  0x0d: [functional.header, functional.union, functional.ethernet, functional.ncm].join(' '),
};

/** Control interface 0 with interrupt endpoint 0x83, data interface 1 with 0x81 and 0x02 in its altsetting 1. */
export function cdcDevice(shape: CdcShape): UsbDevice {
  const { subclass } = shape;
  const interrupt = 'interrupt' in shape ? shape.interrupt : ([16, 9] as const);
  const behind = bytesOf(shape.behindEndpoint ?? '');
  const maxPacket = shape.maxPacket ?? 512;
  const dataTriple = [0x0a, 0x00, subclass === 0x0d ? 0x01 : 0x00] as const;
  const settings = shape.settings ?? [
    altSetting(
      0,
      0,
      [0x02, subclass, 0x00],
      interrupt === undefined
        ? []
        : [endpoint(0x83, 'interrupt', interrupt[0], { interval: interrupt[1], extra: behind })],
      bytesOf(shape.extra ?? usual[subclass]),
    ),
    altSetting(1, 0, dataTriple),
    altSetting(1, 1, dataTriple, [endpoint(0x81, 'bulk', maxPacket), endpoint(0x02, 'bulk', maxPacket)]),
  ];
  return {
    speed: 'high',
    descriptor: { ...deviceDescriptor, ...shape.descriptor },
    configuration: configuration(settings, {
      extra: bytesOf(shape.ofConfiguration ?? ''),
      associations: shape.associations ?? [],
    }),
  };
}

export function contextFor(
  device: UsbDevice,
  driver: MinidriverName,
  txTimerUs = 0,
  differing: Partial<Match> = {},
): BindContext {
  const match: Match = {
    driver,
    networkFunction: 'ethernet',
    configurationValue: 1,
    controlInterface: 0,
    dataInterface: 1,
    quirks: [],
    reason: 'a test says so',
    ...differing,
  };
  return { device, match, tuning: { txTimerUs }, random: new Random(1), log: silentLog };
}

/** "02005e100001" as a string descriptor, and the list of languages. */
export const languages = { hex: '04 03 09 04' } as const;
export function stringDescriptor(text: string): Uint8Array {
  const units = [...text].flatMap((character) => {
    const code = character.charCodeAt(0);
    return [code & 0xff, code >> 8];
  });
  return Uint8Array.of(2 + units.length, 3, ...units);
}

/** Answers as a device that likes everything; `special` first, by the beginning of the step in words. */
export function obliging(
  special: Readonly<Record<string, Answer>> = {},
): (request: DeviceRequest, words: string) => Answer {
  return (_request, words) => {
    for (const [beginning, answer] of Object.entries(special)) {
      if (words.startsWith(beginning)) return answer;
    }
    if (words.startsWith('80 06 0300')) return languages;
    if (words.startsWith('80 06 0304')) return stringDescriptor('02005e100001');
    if (words.startsWith('a1 80')) return { hex: ntbParameters() };
    return 'completed';
  };
}

export interface Parameters {
  readonly formats?: number;
  readonly inMax?: number;
  readonly outMax?: number;
  readonly outDivisor?: number;
  readonly outRemainder?: number;
  readonly outAlignment?: number;
  readonly outMaxDatagrams?: number;
}

function le(value: number, count: number): string {
  return Array.from({ length: count }, (_, i) => hex((value / 2 ** (8 * i)) & 0xff, 2)).join('');
}

/** The 28 bytes of GET_NTB_PARAMETERS, as Linux's gadget has them. */
export function ntbParameters(parameters: Parameters = {}): string {
  const { formats = 3, inMax = 16_384, outMax = 16_384 } = parameters;
  const { outDivisor = 4, outRemainder = 0, outAlignment = 4, outMaxDatagrams = 0 } = parameters;
  return [
    le(28, 2),
    le(formats, 2),
    le(inMax, 4),
    le(4, 2),
    le(0, 2),
    le(4, 2),
    le(0, 2),
    le(outMax, 4),
    le(outDivisor, 2),
    le(outRemainder, 2),
    le(outAlignment, 2),
    le(outMaxDatagrams, 2),
  ].join('');
}

// ---- usbnet, as a minidriver sees it ----

/** Keeps what a started driver tells usbnet, and lends it transfers. */
export class HostDouble {
  readonly stats = new UsbnetStats();
  readonly log = silentLog;
  readonly received: Uint8Array[] = [];
  readonly links: (readonly [boolean, boolean])[] = [];
  readonly speeds: (readonly [number, number])[] = [];
  carrier = false;
  rxUrbSizeBytes: number | undefined;
  /** Transfers that may still be taken. */
  transfersLeft = 1000;
  taken = 0;
  given = 0;
  workAsked = 0;
  readonly #binding: Pick<DriverBinding, 'bulkOut' | 'txBufferBytes' | 'maxPacketsPerTransfer'>;

  constructor(binding: Pick<DriverBinding, 'bulkOut' | 'txBufferBytes' | 'maxPacketsPerTransfer'>) {
    this.#binding = binding;
  }

  takeTxTransfer(): Transfer | undefined {
    if (this.transfersLeft === 0) return undefined;
    this.transfersLeft--;
    this.taken++;
    const { bulkOut, txBufferBytes, maxPacketsPerTransfer } = this.#binding;
    return new Transfer(bulkOut, new Uint8Array(txBufferBytes).fill(0xee), maxPacketsPerTransfer);
  }
  giveTxTransfer(): void {
    this.given++;
  }
  receive(from: Uint8Array, offset: number, length: number): void {
    this.received.push(from.slice(offset, offset + length));
  }
  linkChange(link: boolean, needReset: boolean): void {
    this.links.push([link, needReset]);
  }
  setLinkSpeed(rxBitsPerSecond: number, txBitsPerSecond: number): void {
    this.speeds.push([rxBitsPerSecond, txBitsPerSecond]);
  }
  scheduleWork(): void {
    this.workAsked++;
  }
  setRxUrbSize(bytes: number): void {
    this.rxUrbSizeBytes = bytes;
  }
}

/** Binds, and starts the driver; fails the test if the device is not taken. */
export function startDriver(
  procedure: Procedure<DriverBinding>,
  answer: (request: DeviceRequest, words: string) => Answer = obliging(),
): { readonly binding: DriverBinding; readonly host: HostDouble; readonly hooks: DriverHooks } {
  const { value: binding, error } = converse(procedure, answer);
  if (binding === undefined) throw error;
  const host = new HostDouble(binding);
  return { binding, host, hooks: binding.start(host) };
}

/** An IN transfer that has brought these bytes. */
export function receivedTransfer(...content: readonly Uint8Array[]): Transfer {
  const all = Uint8Array.from(content.flatMap((part) => [...part]));
  const transfer = new Transfer(0x81, all, 0);
  transfer.actualLength = all.length;
  return transfer;
}

export function frameOf(packet: Packet, length: number, fill = 0xa5): Packet {
  packet.length = length;
  packet.bytes.fill(fill, 0, length);
  return packet;
}
