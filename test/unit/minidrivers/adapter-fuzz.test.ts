import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { asix } from '../../../src/minidrivers/asix.ts';
import { AsixReader } from '../../../src/minidrivers/asix-framing.ts';
import { ax88179 } from '../../../src/minidrivers/ax88179.ts';
import { ax88179ToFrames } from '../../../src/minidrivers/ax88179-framing.ts';
import type { Minidriver } from '../../../src/usbnet/minidriver.ts';
import { DriverError, type Procedure, type ProcedureStep } from '../../../src/usbnet/procedure.ts';
import type { UsbnetStats } from '../../../src/usbnet/stats.ts';
import { Transfer } from '../../../src/usbnet/transfer.ts';
import type { RequestResult } from '../../../src/usbnet/transport.ts';
import { writeUint32Le } from '../../../src/wire/byte-order.ts';
import { adapterContext, adapterDevice } from './adapter-device.ts';
import { HostDouble } from './conversation.ts';

/** Transfers for each of the two; seeds are fixed, so a failure comes again. */
const inputs = 1_000_000;
const limitMs = 120_000;
const capacity = 1024;

/** Checks that what is handed up lies within what came, and keeps its sum so that nothing is optimised away. */
class CheckingHost extends HostDouble {
  readonly random: Random;
  frames = 0;
  bytes = 0;
  /** The end of what may be handed up. */
  limit = 0;

  constructor(seed: number) {
    super({ bulkOut: 3, txBufferBytes: 1, maxPacketsPerTransfer: 1 });
    this.random = new Random(seed);
  }

  override receive(from: Uint8Array, offset: number, length: number): void {
    const end = from.length === capacity ? this.limit : from.length;
    if (offset < 0 || length < 0 || offset + length > end) {
      throw new Error(`${length} bytes at ${offset} of ${end}`);
    }
    this.frames++;
    this.bytes += length;
  }
}

/** A transfer in which a well-formed batch has been written, then damaged in one of several ways, or not at all. */
function damage(random: Random, buffer: Uint8Array, length: number): number {
  switch (random.integer(0, 5)) {
    case 0:
      // Cut off, anywhere.
      return random.integer(0, length);
    case 1:
      for (let i = random.integer(1, 4); i > 0; i--) {
        buffer[random.integer(0, Math.max(0, length - 1))] = random.uint32() & 0xff;
      }
      return length;
    case 2:
      // At the ends, where the headers are.
      buffer[random.chance(0.5) ? random.integer(0, 3) : Math.max(0, length - random.integer(1, 8))] =
        random.uint32() & 0xff;
      return length;
    case 3: {
      const made = random.integer(0, 64);
      for (let i = 0; i < made; i++) buffer[i] = random.uint32() & 0xff;
      return made;
    }
    case 4:
      // More than there was to be.
      return Math.min(capacity, length + random.integer(1, 9));
    default:
      return length;
  }
}

function ax88179Batch(random: Random, buffer: Uint8Array): number {
  const count = random.integer(1, 4);
  const lengths: number[] = [];
  let offset = 0;
  for (let i = 0; i < count; i++) {
    const length = random.integer(14, 180);
    lengths.push(length);
    offset += (length + 2 + 7) & ~7;
  }
  const table = offset;
  for (const length of lengths) {
    const flags = random.chance(0.1) ? 0xa000_0000 : 0;
    writeUint32Le(buffer, offset, (((length + 2) << 16) | flags) >>> 0);
    writeUint32Le(buffer, offset + 4, 0x8000_0000);
    offset += 8;
  }
  writeUint32Le(buffer, offset, 0);
  writeUint32Le(buffer, offset + 4, ((table << 16) | (2 * count)) >>> 0);
  return offset + 8;
}

function asixStream(random: Random, buffer: Uint8Array): number {
  let offset = 0;
  for (let i = random.integer(1, 4); i > 0; i--) {
    const length = random.integer(14, 180);
    writeUint32Le(buffer, offset, ((~length << 16) | length) >>> 0);
    offset += 4 + ((length + 1) & ~1);
  }
  return offset;
}

function total(stats: UsbnetStats): number {
  return [...stats.rxFaults.values()].reduce((sum, count) => sum + count, 0);
}

test(
  'ax88179_178a: a million transfers, good, damaged and random',
  () => {
    const host = new CheckingHost(179);
    const { random } = host;
    const transfer = new Transfer(0x82, new Uint8Array(capacity), 0);
    let refused = 0;
    for (let i = 0; i < inputs; i++) {
      transfer.actualLength = damage(random, transfer.buffer, ax88179Batch(random, transfer.buffer));
      host.limit = transfer.actualLength;
      if (!ax88179ToFrames(host, transfer, 0)) refused++;
    }
    // Each fault has its reason: a transfer that was refused, or a frame that was left out.
    expect(total(host.stats)).toBe(refused + host.stats.rxErrors);
    expect(Object.fromEntries(host.stats.rxFaults)).toEqual({
      'short-transfer': expect.any(Number),
      'no-entries': expect.any(Number),
      'table-out-of-bounds': expect.any(Number),
      'frame-out-of-bounds': expect.any(Number),
      'bad-crc': expect.any(Number),
      'dropped-by-device': expect.any(Number),
      runt: expect.any(Number),
    });
    expect(refused / inputs).toBeGreaterThan(0.2);
    expect(host.frames).toBeGreaterThan(inputs / 2);
  },
  limitMs,
);

test(
  'asix: a million transfers of one stream, good, damaged, random and missing',
  () => {
    const host = new CheckingHost(772);
    const { random } = host;
    const reader = new AsixReader(host, 1518);
    const buffer = new Uint8Array(capacity);
    let refused = 0;
    let recovered = 0;
    for (let i = 0; i < inputs; i++) {
      const length = damage(random, buffer, asixStream(random, buffer));
      host.limit = length;
      if (!reader.read(buffer, length, 0)) {
        refused++;
        if (i % 16 !== 0) continue;
        // After a refusal a good transfer is read whole, whatever was before it.
        const good = asixStream(random, buffer);
        host.limit = good;
        const before = host.frames;
        if (!reader.read(buffer, good, 0) || host.frames === before) throw new Error(`not read after ${i}`);
        recovered++;
      }
    }
    const faults = Object.fromEntries(host.stats.rxFaults);
    expect(total(host.stats)).toBe(refused + host.stats.rxErrors);
    expect(faults).toEqual({
      'bad-header': expect.any(Number),
      'too-long': expect.any(Number),
      'out-of-sync': expect.any(Number),
      'odd-transfer': expect.any(Number),
    });
    expect(refused / inputs).toBeGreaterThan(0.2);
    expect(recovered).toBeGreaterThan(1000);
    expect(host.frames).toBeGreaterThan(inputs / 2);
  },
  limitMs,
);

describe('answers of a device that has lost its mind', () => {
  /** Sleeps and requests of one procedure; more than this would be a loop. */
  const mostSteps = 1500;
  const noData = new Uint8Array(0);
  const failures = ['stall', 'timed-out', 'protocol-error', 'gone', 'failed', 'overflow'] as const;

  /** Carries out procedures with a device that answers at random; counts its answers. */
  class MadDevice {
    readonly random: Random;
    /** How likely a request fails. */
    failure = 0;
    answers = 0;
    refused = 0;

    constructor(seed: number) {
      this.random = new Random(seed);
    }

    #answer(step: ProcedureStep): RequestResult {
      if (step.kind === 'sleep') return { status: 'completed', data: noData };
      this.answers++;
      if (this.random.chance(this.failure)) {
        return { status: failures[this.random.integer(0, failures.length - 1)] ?? 'failed', data: noData };
      }
      if (step.kind !== 'control-in') return { status: 'completed', data: noData };
      // Of any length, even beyond what was asked for.
      const whole = this.random.chance(0.95);
      const data = new Uint8Array(whole ? step.length : this.random.integer(0, step.length + 8));
      this.random.fill(data);
      return { status: 'completed', data };
    }

    carryOut<T>(procedure: Procedure<T> | undefined): T | undefined {
      if (procedure === undefined) return undefined;
      try {
        let result = procedure.next({ status: 'completed', data: noData });
        for (let steps = 0; result.done !== true; steps++) {
          if (steps > mostSteps) throw new Error('it goes on and on');
          result = procedure.next(this.#answer(result.value));
        }
        return result.value;
      } catch (error) {
        if (!(error instanceof DriverError)) throw error;
        this.refused++;
        return undefined;
      }
    }
  }

  test.each<[string, Minidriver, number, number, number]>([
    ['ax88179_178a', ax88179, 0x0b95, 0x1790, inputs],
    ['asix, AX88172', asix, 0x0b95, 0x1720, inputs / 4],
    ['asix, AX88178', asix, 0x0b95, 0x1780, inputs / 4],
    ['asix, AX88772', asix, 0x0b95, 0x7720, inputs / 4],
    ['asix, AX88772B', asix, 0x0b95, 0x772b, inputs / 4],
  ])(
    '%s: bound or refused with a reason, and every procedure ends',
    (_name, minidriver, vendorId, productId, answers) => {
      const device = new MadDevice(productId);
      const { random } = device;
      const context = adapterContext(adapterDevice(vendorId, productId), minidriver.name);
      const speeds = new Set<number>();
      let bound = 0;
      for (let i = 0; device.answers < answers; i++) {
        device.failure = i % 4 === 0 ? 0 : 0.02;
        const binding = device.carryOut(minidriver.bind(context));
        if (binding === undefined) continue;
        bound++;
        const host = new HostDouble(binding);
        const hooks = binding.start(host);
        device.failure = random.chance(0.5) ? 0 : 0.1;
        device.carryOut(hooks.reset?.());
        const status = new Uint8Array(8);
        random.fill(status);
        hooks.status?.(status, random.integer(0, 8), 0);
        device.carryOut(hooks.linkReset?.());
        device.carryOut(hooks.setRxMode?.({ promiscuous: random.chance(0.5), multicast: true }));
        device.carryOut(hooks.stop?.());
        for (const [rxBitsPerSecond] of host.speeds) speeds.add(rxBitsPerSecond);
      }
      expect(bound).toBeGreaterThan(50);
      expect(device.refused).toBeGreaterThan(50);
      expect([...speeds].every((speed) => [10e6, 100e6, 1000e6].includes(speed))).toBe(true);
    },
    limitMs,
  );
});
