/**
 * Random and mutated inputs, seeded, a million a driver and as many control answers in pieces: nothing throws, nothing
 * runs on, no byte is handed up that is not in the transfer, and what is refused has a reason. A failure names its run.
 */
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { cdcEem } from '../../../src/minidrivers/cdc-eem.ts';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import { huaweiNcm } from '../../../src/minidrivers/huawei-ncm.ts';
import { RndisControl } from '../../../src/minidrivers/rndis-control.ts';
import { rndisHost } from '../../../src/minidrivers/rndis-host.ts';
import type { DriverHooks, Match, Minidriver } from '../../../src/usbnet/minidriver.ts';
import { DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { Transfer } from '../../../src/usbnet/transfer.ts';
import type { RequestResult, UsbDevice } from '../../../src/usbnet/transport.ts';
import { writeEemCommand, writeEemCrc, writeEemDataHeader } from '../../../src/wire/eem.ts';
import { ncmCrcSignatures, ncmSignatures, type NtbFormat } from '../../../src/wire/ntb.ts';
import { NtbWriter } from '../../../src/wire/ntb-writer.ts';
import {
  encodeRndisMessage,
  rndisPacketHeaderLength,
  writeRndisPacketHeader,
} from '../../../src/wire/rndis.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { mutated, randomBytes } from '../wire/mutation.ts';
import {
  type Answer,
  contextFor,
  converse,
  functional,
  HostDouble,
  obliging,
  startDriver,
} from './conversation.ts';

const inputs = 1_000_000;
/** Inputs are made in a stock of so many bytes each, so that making them does not cost more than reading them. */
const maxBytes = 640;

// ---- inputs that are right ----

function frame(random: Random): Uint8Array {
  const bytes = new Uint8Array(random.integer(14, 120));
  random.fill(bytes);
  return bytes;
}

function rndisTransfer(random: Random): Uint8Array {
  const bytes = new Uint8Array(maxBytes);
  let length = 0;
  for (let i = random.integer(1, 3); i > 0; i--) {
    const data = frame(random);
    writeRndisPacketHeader(bytes, length, data.length);
    bytes.set(data, length + rndisPacketHeaderLength);
    length += rndisPacketHeaderLength + data.length;
  }
  return bytes.slice(0, length);
}

function eemTransfer(random: Random): Uint8Array {
  const bytes = new Uint8Array(maxBytes);
  let length = 0;
  for (let i = random.integer(1, 3); i > 0; i--) {
    if (random.chance(0.2)) {
      writeEemCommand(bytes, length, random.integer(0, 1), 5);
      length += 7;
      continue;
    }
    const data = frame(random);
    const withCrc = random.chance(0.5);
    writeEemDataHeader(bytes, length, data.length, withCrc);
    bytes.set(data, length + 2);
    writeEemCrc(bytes, length + 2, data.length, withCrc);
    length += data.length + 6;
  }
  return bytes.slice(0, length);
}

function ntbTransfer(format: NtbFormat): (random: Random) => Uint8Array {
  return (random) => {
    const ndpToEnd = random.chance(0.5);
    const geometry = { format, ndpModulus: 4, modulus: 4, remainder: 2, maxDatagrams: 3, ndpToEnd };
    const writer = new NtbWriter(geometry);
    const bytes = new Uint8Array(maxBytes);
    writer.begin(bytes, maxBytes, random.integer(0, 65_535));
    const signature = (random.chance(0.5) ? ncmSignatures : ncmCrcSignatures)[format];
    for (let i = 0; i < 3; i++) {
      const data = frame(random);
      writer.tryAppend(signature, data, 0, data.length);
    }
    return bytes.slice(0, writer.finish());
  };
}

// ---- drivers ----

function twoInterfaces(triple: readonly [number, number, number], extra: string): UsbDevice {
  const status = endpoint(0x83, 'interrupt', 16);
  const bulk = [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)];
  return {
    speed: 'high',
    descriptor: deviceDescriptor,
    configuration: configuration([
      altSetting(0, 0, triple, [status], bytesOf(extra)),
      altSetting(1, 0, [0x0a, 0, 0], bulk),
    ]),
  };
}

function oneInterface(triple: readonly [number, number, number], extra: string): UsbDevice {
  const all = [endpoint(0x83, 'interrupt', 16), endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)];
  const settings = [altSetting(0, 0, triple, all, bytesOf(extra))];
  return { speed: 'high', descriptor: deviceDescriptor, configuration: configuration(settings) };
}

const ncmDescriptors = `${functional.union} ${functional.ethernet} ${functional.ncm}`;
const singleNcm = `05 24 06 00 00 ${functional.ethernet} ${functional.ncm}`;

/** Answers RNDIS commands so that a driver binds. */
function rndisAnswers(): (words: string) => Answer {
  let last = '';
  return (words) => {
    if (words.startsWith('21 00')) last = words.slice('21 00 0000 0000 : '.length);
    if (!words.startsWith('a1 01')) return 'completed';
    const bytes = bytesOf(last);
    const answer = new Uint8Array(52);
    answer.set(bytes.subarray(0, 12));
    answer[3] = 0x80;
    answer[4] = 52;
    if (bytes[0] === 2) answer.set([0x2c, 6], 36);
    if (bytes[0] === 4) answer.set([6, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 0, 1], 16);
    return answer;
  };
}

interface Fuzzed {
  readonly driver: Minidriver;
  readonly device: UsbDevice;
  readonly match?: Partial<Match>;
  readonly make: (random: Random) => Uint8Array;
}

const drivers: readonly Fuzzed[] = [
  {
    driver: rndisHost,
    device: twoInterfaces([0xe0, 1, 3], '05 24 06 00 01'),
    make: rndisTransfer,
  },
  { driver: cdcEem, device: oneInterface([2, 0x0c, 7], ''), match: { dataInterface: 0 }, make: eemTransfer },
  { driver: cdcNcm, device: twoInterfaces([2, 0x0d, 0], ncmDescriptors), make: ntbTransfer('ntb16') },
  {
    driver: huaweiNcm,
    device: oneInterface([0xff, 2, 0x16], singleNcm),
    match: { dataInterface: 0 },
    make: ntbTransfer('ntb32'),
  },
];

/** Checks what is handed up, and keeps none of it. */
class CheckingHost extends HostDouble {
  transfer: Transfer | undefined;
  frames = 0;

  override takeTxTransfer(): Transfer | undefined {
    this.transfersLeft = 1000;
    return super.takeTxTransfer();
  }

  override receive(from: Uint8Array, offset: number, length: number): void {
    this.frames++;
    if (from !== this.transfer?.buffer) throw new Error('bytes of something else');
    const isInside = offset >= 0 && length >= 0 && offset + length <= this.transfer.actualLength;
    if (!isInside) throw new Error(`${length} bytes at ${offset} of ${this.transfer.actualLength}`);
  }
}

function start({ driver, device, match }: Fuzzed): { hooks: DriverHooks; host: CheckingHost } {
  const rndis = rndisAnswers();
  const usual = obliging();
  const procedure = driver.bind(contextFor(device, driver.name, 0, match ?? {}));
  const { binding } = startDriver(procedure, (request, words) =>
    driver === rndisHost ? rndis(words) : usual(request, words),
  );
  const host = new CheckingHost(binding);
  return { hooks: binding.start(host), host };
}

describe.each(drivers.map((each) => ({ name: each.driver.name, each })))('$name', ({ each }) => {
  test('a million transfers', () => {
    const seed = 4;
    const random = new Random(seed);
    const { hooks, host } = start(each);
    const transfer = new Transfer(0x81, new Uint8Array(1024), 0);
    host.transfer = transfer;
    const originals = Array.from({ length: 500 }, () => each.make(random));
    let refused = 0;
    let good = 0;
    let counted = 0;
    for (let run = 0; run < inputs; run++) {
      const original = originals[random.integer(0, originals.length - 1)] ?? new Uint8Array(0);
      let length: number;
      // Most are changed in place, which costs little; a part of them thoroughly, or made from nothing.
      const way = random.integer(0, 19);
      if (way === 0) {
        const bytes = mutated(random, original).subarray(0, 1024);
        transfer.buffer.set(bytes);
        length = bytes.length;
      } else if (way === 1) {
        const bytes = randomBytes(random, 200);
        transfer.buffer.set(bytes);
        length = bytes.length;
      } else {
        transfer.buffer.set(original);
        length = way < 5 ? random.integer(0, original.length) : original.length;
        for (let i = random.integer(0, 3); i > 0; i--) {
          const at = random.integer(0, Math.min(original.length - 1, random.chance(0.7) ? 63 : 639));
          transfer.buffer[at] = random.chance(0.5)
            ? random.integer(0, 255)
            : (transfer.buffer[at] ?? 0) ^ 0x80;
        }
      }
      transfer.actualLength = length;
      try {
        if (hooks.rxFixup(transfer, run)) good++;
        else refused++;
        if (hooks.hasPendingTx?.() === true && run % 3 === 0) hooks.txFixup(null, run);
      } catch (error) {
        throw new Error(`seed ${seed}, run ${run}: ${transfer.buffer.slice(0, length).join(',')}`, {
          cause: error,
        });
      }
    }
    for (const count of host.stats.rxFaults.values()) counted += count;
    expect(refused + good).toBe(inputs);
    // Both kinds are there in plenty, and whatever is refused has a reason.
    expect(refused).toBeGreaterThan(inputs / 20);
    expect(good).toBeGreaterThan(inputs / 20);
    expect(host.frames).toBeGreaterThan(inputs / 20);
    expect(counted).toBeGreaterThanOrEqual(refused);
    expect(host.stats.rxFaults.size).toBeLessThan(12);
  }, 60_000);
});

describe('control answers', () => {
  /** Answers that a device may give, right and wrong. */
  function answers(): (random: Random) => Uint8Array {
    const originals = [
      encodeRndisMessage({ kind: 'indicate', status: 0x4001_000b }),
      encodeRndisMessage({ kind: 'keep-alive', requestId: 5 }),
      encodeRndisMessage({ kind: 'set-complete', requestId: 1, status: 0 }),
      encodeRndisMessage({
        kind: 'query-complete',
        requestId: 2,
        status: 0,
        information: new Uint8Array(40),
      }),
      encodeRndisMessage({
        kind: 'initialize-complete',
        requestId: 1,
        status: 0,
        maxPacketsPerMessage: 1,
        maxTransferBytes: 1580,
        alignmentExponent: 0,
      }),
    ];
    return (random) => {
      const original = originals[random.integer(0, originals.length - 1)] ?? new Uint8Array(0);
      const way = random.integer(0, 9);
      if (way === 0) return randomBytes(random, 60);
      if (way < 4) return mutated(random, original);
      const bytes = original.slice(0, way < 7 ? random.integer(0, original.length) : original.length);
      bytes[random.integer(0, 15)] = random.integer(0, 255);
      return bytes;
    };
  }

  /** Carries a procedure out with such answers; the number of its steps. */
  function carryOut(procedure: Procedure<unknown>, answer: () => RequestResult): number {
    let steps = 0;
    let result: RequestResult = { status: 'completed', data: new Uint8Array(0) };
    try {
      for (;;) {
        const step = procedure.next(result);
        if (step.done === true) return steps;
        steps++;
        if (step.value.kind !== 'sleep') result = answer();
      }
    } catch (error) {
      if (error instanceof DriverError) return steps;
      throw error;
    }
  }

  test('a million for RNDIS, in conversations that all come to an end', () => {
    const random = new Random(9);
    const make = answers();
    let given = 0;
    let conversations = 0;
    let longest = 0;
    const statuses = ['stall', 'timed-out', 'failed'] as const;
    while (given < inputs) {
      const control = new RndisControl(0, () => {});
      const answer = (): RequestResult => {
        given++;
        if (!random.chance(0.05)) return { status: 'completed', data: make(random) };
        return { status: statuses[random.integer(0, 2)] ?? 'stall', data: new Uint8Array(0) };
      };
      for (let i = 0; i < 3; i++) {
        const steps = carryOut(control.query('ask', 0x0101_0101, 48, 6), answer);
        longest = Math.max(longest, steps, carryOut(control.fetchUnasked(), answer));
      }
      conversations++;
    }
    expect(conversations).toBeGreaterThan(1000);
    expect(longest).toBeLessThan(2000);
  }, 60_000);

  test.each(drivers.map((each) => ({ name: each.driver.name, each })))(
    '$name binds, or says why not, whatever it is told',
    ({ each: { driver, device, match } }) => {
      const random = new Random(17);
      const make = answers();
      const usual = obliging();
      const rndis = rndisAnswers();
      let bound = 0;
      for (let run = 0; run < 5000; run++) {
        const procedure = driver.bind(contextFor(device, driver.name, 0, match ?? {}));
        const { value, error, steps } = converse(procedure, (request, words) => {
          const plain = driver === rndisHost ? rndis(words) : usual(request, words);
          if (random.chance(0.8)) return plain;
          if (random.chance(0.3)) return random.chance(0.5) ? 'stall' : 'failed';
          const bytes =
            typeof plain === 'string'
              ? make(random)
              : plain instanceof Uint8Array
                ? plain
                : bytesOf(plain.hex);
          return mutated(random, bytes);
        });
        if (error !== undefined && !(error instanceof DriverError)) throw error;
        expect(steps.length).toBeLessThan(2000);
        if (value === undefined) continue;
        bound++;
        const sane = value.hardMtuBytes > 0 && value.txBufferBytes >= 1514 && value.mtuBytes >= 68;
        if (!sane) throw new Error(`run ${run}: ${JSON.stringify(value)}`);
      }
      expect(bound).toBeGreaterThan(100);
    },
    60_000,
  );
});
