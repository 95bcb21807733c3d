import { crc32 as zlibCrc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import type { Quirk } from '../../../src/minidrivers/device-rule.ts';
import { agreeOnNtbs } from '../../../src/minidrivers/ncm-agreement.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import { parseNtbParameters } from '../../../src/wire/ntb.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import {
  type Answer,
  cdcDevice,
  contextFor,
  converse,
  frameOf,
  functional,
  ntbParameters,
  obliging,
  type Parameters,
  receivedTransfer,
  startDriver,
} from './conversation.ts';

function bind(quirks: readonly Quirk[] = [], capabilities = '00'): ReturnType<typeof cdcNcm.bind> {
  const extra = `${functional.union} ${functional.ethernet} 06 24 1a 00 01 ${capabilities}`;
  return cdcNcm.bind(contextFor(cdcDevice({ subclass: 0x0d, extra }), 'cdc_ncm', 0, { quirks }));
}

function started(
  quirks: readonly Quirk[],
  parameters: Parameters = {},
  special: Readonly<Record<string, Answer>> = {},
  capabilities = '00',
): ReturnType<typeof startDriver> {
  const answer = obliging({ ...special, 'a1 80': { hex: ntbParameters(parameters) } });
  return startDriver(bind(quirks, capabilities), answer);
}

/** An NTB with these frames. */
function send(hooks: ReturnType<typeof startDriver>['hooks'], ...lengths: readonly number[]): Uint8Array {
  const pool = new PacketPool(50);
  let transfer;
  for (const length of lengths) transfer ??= hooks.txFixup(frameOf(pool.take() ?? expect.fail(), length), 0);
  transfer ??= hooks.txFixup(null, 0);
  expect(transfer).toBeDefined();
  return transfer?.buffer.slice(0, transfer.length) ?? new Uint8Array(0);
}

function uint16(bytes: Uint8Array, offset: number): number {
  return new DataView(bytes.buffer).getUint16(offset, true);
}

test('ndp-to-end: one NDP, behind all datagrams, aligned as the device asks', () => {
  const ntb = send(started(['ndp-to-end'], { outAlignment: 32 }).hooks, 60, 61, 62);
  const ndp = uint16(ntb, 10);
  expect(ndp % 32).toBe(0);
  for (let i = 0; i < 3; i++) {
    expect(uint16(ntb, ndp + 8 + 4 * i) + uint16(ntb, ndp + 10 + 4 * i)).toBeLessThanOrEqual(ndp);
  }
  expect([uint16(ntb, ndp + 6), uint16(ntb, ndp + 20), uint16(ntb, ndp + 22)]).toEqual([0, 0, 0]);
});

test('ndp-to-end: a small NTB keeps room for the NDP that is to come', () => {
  const parameters = { outMax: 2048, outAlignment: 64 };
  const { hooks } = started(['ndp-to-end'], parameters);
  for (const lengths of [[1514], [1514, 300], [900, 900, 900]]) {
    const ntb = send(hooks, ...lengths);
    expect(ntb.length).toBeLessThanOrEqual(2048);
    const ndp = uint16(ntb, 10);
    expect(ndp + uint16(ntb, ndp + 4)).toBeLessThanOrEqual(ntb.length);
  }
});

test('prefer-ntb32: chosen where there is a choice, and only there', () => {
  const format = (formats: number, quirks: readonly Quirk[]): string | undefined =>
    started(quirks, { formats }).binding.facts['NTB format'];
  expect([
    format(3, ['prefer-ntb32']),
    format(3, []),
    format(1, ['prefer-ntb32']),
    format(2, []),
    format(0, ['prefer-ntb32']),
  ]).toEqual(['NTB32', 'NTB16', 'NTB16', 'NTB32', 'NTB16']);
});

test('send-zlp: nothing is padded to the full size, and usbnet is told', () => {
  const usual = started([]);
  const zlp = started(['send-zlp']);
  expect([usual.binding.flags.sendZlp, zlp.binding.flags.sendZlp]).toEqual([false, true]);
  const lengths = Array.from({ length: 10 }, () => 1514);
  expect(send(usual.hooks, ...lengths)).toHaveLength(16_384);
  const ntb = send(zlp.hooks, ...lengths);
  expect(ntb.length).toBeGreaterThan(15_140);
  expect(ntb.length).toBeLessThan(15_600);
});

test('no-link-interrupt: the carrier is taken to be there', () => {
  expect(started(['no-link-interrupt']).binding.flags.linkInterrupt).toBe(false);
});

test('avoid-altsetting-toggle: altsetting 0, then the other, and never back', () => {
  const { steps } = converse(bind(['avoid-altsetting-toggle']), obliging());
  expect(steps.filter((step) => step.startsWith('interface'))).toEqual([
    'interface 1 alt 0',
    'interface 1 alt 1',
  ]);
});

describe('alignment', () => {
  test.each([
    [4, 0, 4],
    [32, 6, 64],
    [512, 0, 512],
    [64, 63, 8],
  ])('divisor %i, remainder %i, NDP at multiples of %i', (outDivisor, outRemainder, outAlignment) => {
    const ntb = send(started([], { outDivisor, outRemainder, outAlignment }).hooks, 60, 333, 61);
    const ndp = uint16(ntb, 10);
    expect(ndp % outAlignment).toBe(0);
    for (let i = 0; i < 3; i++) {
      expect((uint16(ntb, ndp + 8 + 4 * i) + 14) % outDivisor).toBe(outRemainder);
    }
  });

  test('one that leaves no room for a frame is not believed', () => {
    const parameters = parseNtbParameters(
      bytesOf(ntbParameters({ outMax: 2048, outDivisor: 1024, outAlignment: 1024 })),
    );
    for (const ndpToEnd of [false, true]) {
      const { geometry } = agreeOnNtbs(parameters ?? expect.fail(), 1514, 512, {
        ndpToEnd,
        preferNtb32: false,
      });
      expect(geometry).toMatchObject({ modulus: 4, ndpModulus: 4, remainder: 2, ndpToEnd });
    }
  });
});

describe('small NTBs', () => {
  test.each([2048, 2049, 3000, 4096])('of %i bytes hold what fits, and never more', (size) => {
    const { hooks, binding } = started([], { inMax: size, outMax: size });
    expect(binding).toMatchObject({ hardMtuBytes: size, rxUrbSizeBytes: size });
    expect(send(hooks, 1514, 1514, 1514).length).toBeLessThanOrEqual(size);
  });

  test('a device that claims less than the least is taken to have that', () => {
    expect(started([], { inMax: 0, outMax: 0 }).binding).toMatchObject({ rxUrbSizeBytes: 2048 });
  });
});

describe('CRC', () => {
  const always = { '21 8a': 'stall', 'a1 89': { hex: '01 00' } } as const;

  test('a device that will not do without gets it', () => {
    const { hooks } = started([], {}, always, '10');
    const ntb = send(hooks, 60);
    const ndp = uint16(ntb, 10);
    expect(new TextDecoder().decode(ntb.slice(ndp, ndp + 4))).toBe('NCM1');
    const [offset, length] = [uint16(ntb, ndp + 8), uint16(ntb, ndp + 10)];
    expect(length).toBe(64);
    const crc = new DataView(ntb.buffer).getUint32(offset + 60, true);
    expect(crc).toBe(zlibCrc32(ntb.slice(offset, offset + 60)));
  });

  test.each<[string, Readonly<Record<string, Answer>>]>([
    ['accepts to leave it away', {}],
    ['refuses, and says it is off', { '21 8a': 'stall', 'a1 89': { hex: '00 00' } }],
    ['refuses everything', { '21 8a': 'stall', 'a1 89': 'stall' }],
  ])('a device that %s gets none', (_name, special) => {
    const ntb = send(started([], {}, special, '10').hooks, 60);
    expect(new TextDecoder().decode(ntb.slice(12, 16))).toBe('NCM0');
  });

  test('is checked and taken off wherever it comes, and a wrong one costs the frame', () => {
    const ntb = send(started([], {}, always, '10').hooks, 60, 70);
    const { hooks, host } = started([]);
    expect(hooks.rxFixup(receivedTransfer(ntb), 0)).toBe(true);
    expect(host.received.map(({ length }) => length)).toEqual([60, 70]);
    const ndp = uint16(ntb, 10);
    ntb[uint16(ntb, ndp + 8) + 20] = 0;
    expect(hooks.rxFixup(receivedTransfer(ntb), 0)).toBe(true);
    expect(host.received.map(({ length }) => length)).toEqual([60, 70, 70]);
    expect(host.stats).toMatchObject({ rxErrors: 1, rxCrcErrors: 1 });
    expect([...host.stats.rxFaults]).toEqual([['bad-crc', 1]]);
  });
});

test('what is wrong with an NTB is counted by its reason', () => {
  const { hooks, host } = started([]);
  const good = send(hooks, 60, 61);
  const ndp = uint16(good, 10);
  const changed = (offset: number, value: number): Uint8Array => {
    const bytes = good.slice();
    new DataView(bytes.buffer).setUint16(offset, value, true);
    return bytes;
  };
  const inputs = [
    good.subarray(0, 19),
    changed(0, 0),
    changed(8, 20_000),
    changed(10, 5000),
    changed(ndp + 4, 8),
  ];
  for (const bytes of inputs) expect(hooks.rxFixup(receivedTransfer(bytes), 0)).toBe(false);
  for (const bytes of [changed(ndp + 2, 0), changed(ndp + 14, 5000)]) {
    expect(hooks.rxFixup(receivedTransfer(bytes), 0)).toBe(true);
  }
  expect([...host.stats.rxFaults]).toEqual([
    ['short', 1],
    ['bad-signature', 1],
    ['bad-block-length', 1],
    ['bad-ndp', 2],
    ['foreign-ndp', 1],
    ['bad-datagram', 1],
  ]);
});
