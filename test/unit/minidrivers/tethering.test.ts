/** The drivers of phones, sticks and boards on virtual devices that insist on what real ones insist on. */
import { describe, expect, test } from 'vitest';
import { bytesEqual } from '../../../src/base/bytes.ts';
import type { Quirk } from '../../../src/minidrivers/device-rule.ts';
import type { RndisFault } from '../../../src/sim/firmware/rndis.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import { DrivenDevice, fast } from './driven-device.ts';

const noBytes = new Uint8Array(0);

function expectCleanExchange(driven: DrivenDevice): void {
  const sent = driven.exchange();
  expect(driven.echoes.length).toBe(sent.length);
  const different = sent.findIndex((payload, i) => !bytesEqual(payload, driven.echoes[i] ?? noBytes));
  expect(different).toBe(-1);
  const { stats } = driven.netif.usbnet;
  expect(stats).toMatchObject({ rxErrors: 0, rxDropped: 0, txErrors: 0, txDropped: 0 });
  expect([...stats.rxFaults]).toEqual([]);
  expect(driven.device.inspect(driven.clock.nowUs()).device).toMatchObject({
    malformedFromHost: 0,
    dropped: 0,
  });
}

function expectClosed(driven: DrivenDevice): void {
  expect(driven.stop()).toEqual({ ok: true, value: undefined });
  expect(driven.netif.txQueue.dql.inflight).toBe(0);
  expect(driven.netif.packets.inUse).toBe(0);
}

interface Case {
  readonly name: string;
  readonly device: SimPersonality;
  readonly driver: string;
  readonly quirks?: readonly Quirk[];
}

const rndisFaults: readonly RndisFault[] = [
  'no-notification',
  'stale-answer',
  'fragments',
  'empty-answer',
  'short-answer',
  'lost-answer',
  'asks-keep-alive',
  'long-header',
  'filter-lost',
];

const ntb = { inMaxBytes: 2048, outMaxBytes: 2048 };
const cases: readonly Case[] = [
  { name: 'RNDIS', device: fast('tether-rndis'), driver: 'rndis_host' },
  {
    name: 'RNDIS over ACM, at full speed',
    device: fast('tether-rndis', { speed: 'full', rndis: { triple: 'acm' } }),
    driver: 'rndis_host',
  },
  {
    name: 'RNDIS at SuperSpeed, several packets a transfer',
    device: fast('tether-rndis', { speed: 'super', rndis: { packetsPerTransfer: 8 } }),
    driver: 'rndis_host',
  },
  ...rndisFaults.map((fault): Case => ({
    name: `RNDIS: ${fault}`,
    device: fast('tether-rndis', { rndis: { faults: [fault] } }),
    driver: 'rndis_host',
  })),
  {
    name: 'RNDIS with most bad habits at once',
    device: fast('tether-rndis', {
      rndis: {
        packetsPerTransfer: 3,
        faults: [
          'no-notification',
          'stale-answer',
          'fragments',
          'empty-answer',
          'asks-keep-alive',
          'long-header',
        ],
      },
    }),
    driver: 'rndis_host',
  },
  { name: 'EEM', device: fast('board-eem'), driver: 'cdc_eem' },
  { name: 'EEM at full speed', device: fast('board-eem', { speed: 'full' }), driver: 'cdc_eem' },
  {
    name: 'EEM at SuperSpeed with CRCs',
    device: fast('board-eem', { speed: 'super', eem: { withCrc: true } }),
    driver: 'cdc_eem',
  },
  { name: "Huawei's NCM", device: fast('stick-huawei'), driver: 'huawei_cdc_ncm' },
  {
    name: "Huawei's NCM that has to be called",
    device: fast('stick-huawei', { ncm: { huawei: { needsCall: true } } }),
    driver: 'huawei_cdc_ncm',
  },
  {
    name: "Huawei's NCM that refuses NTB16",
    device: fast('stick-huawei', { ncm: { onlyFormat: 'ntb32' } }),
    driver: 'huawei_cdc_ncm',
  },
  {
    name: "Huawei's NCM that has NTB16 alone, in small blocks",
    device: fast('stick-huawei', { ntb, ncm: { onlyFormat: 'ntb16' } }),
    driver: 'huawei_cdc_ncm',
  },
  {
    name: 'NCM: NDP at the end',
    device: fast('tether-usb2', { ncm: { rules: { ndpToEnd: true } } }),
    driver: 'cdc_ncm',
    quirks: ['ndp-to-end'],
  },
  {
    name: 'NCM: NDP at the end and NTB32',
    device: fast('tether-usb2', {
      ncm: { onlyFormat: 'ntb32', rules: { ndpToEnd: true, ndpAlignment: 16 } },
    }),
    driver: 'cdc_ncm',
    quirks: ['ndp-to-end', 'prefer-ntb32'],
  },
  {
    name: 'NCM: an empty packet behind what ends on a boundary',
    device: fast('tether-usb2', { ncm: { needsEmptyPacket: true } }),
    driver: 'cdc_ncm',
    quirks: ['send-zlp'],
  },
  {
    name: 'NCM: alignment',
    device: fast('tether-usb2', { ncm: { rules: { ndpAlignment: 64, divisor: 32, remainder: 6 } } }),
    driver: 'cdc_ncm',
  },
  { name: 'NCM: CRC always', device: fast('tether-usb2', { ncm: { alwaysCrc: true } }), driver: 'cdc_ncm' },
  {
    name: 'NCM: CRC always, NTB32, NDP at the end',
    device: fast('tether-usb2', { ncm: { alwaysCrc: true, onlyFormat: 'ntb32', rules: { ndpToEnd: true } } }),
    driver: 'cdc_ncm',
    quirks: ['ndp-to-end'],
  },
  { name: 'NCM: small NTBs', device: fast('tether-usb2', { ntb }), driver: 'cdc_ncm' },
  {
    name: 'NCM: the altsetting must be toggled',
    device: fast('tether-usb2', { ncm: { toggle: 'needed' } }),
    driver: 'cdc_ncm',
  },
  {
    name: 'NCM: the altsetting must not be toggled',
    device: fast('tether-usb2', { ncm: { toggle: 'fatal' } }),
    driver: 'cdc_ncm',
    quirks: ['avoid-altsetting-toggle'],
  },
];

describe.each(cases)('$name', ({ device, driver, quirks = [] }) => {
  test('every datagram comes back as it went, without an error; then it closes, and opens again', () => {
    const driven = new DrivenDevice(device, { quirks });
    expect(driven.binding.name).toBe(driver);
    expect(driven.open()).toEqual({ ok: true, value: undefined });
    driven.run(100_000);
    expectCleanExchange(driven);
    expectClosed(driven);
    expect(driven.open()).toEqual({ ok: true, value: undefined });
    driven.run(100_000);
    expectCleanExchange(driven);
    expectClosed(driven);
  });
});

describe('what devices insist on is enforced: without its quirk nothing goes through', () => {
  test.each<[string, SimPersonality, readonly Quirk[]]>([
    ['NDP at the end', fast('tether-usb2', { ncm: { rules: { ndpToEnd: true } } }), []],
    ['toggling is fatal', fast('tether-usb2', { ncm: { toggle: 'fatal' } }), []],
    ['toggling is needed', fast('tether-usb2', { ncm: { toggle: 'needed' } }), ['avoid-altsetting-toggle']],
  ])('%s', (_name, device, quirks) => {
    const driven = new DrivenDevice(device, { quirks });
    driven.open();
    driven.run(100_000);
    driven.exchange(1);
    expect(driven.echoes).toHaveLength(0);
  });

  test('an NTB of full size without an empty packet runs into the next', () => {
    const device = fast('tether-usb2', { ncm: { needsEmptyPacket: true } });
    const driven = new DrivenDevice(device);
    driven.open();
    driven.run(100_000);
    const sent = driven.exchange();
    expect(driven.echoes.length).toBeLessThan(sent.length);
  });
});

describe('RNDIS', () => {
  test('a carrier that goes is believed once the device confirms it, and so is its return', () => {
    const driven = new DrivenDevice(fast('tether-rndis'));
    driven.open();
    driven.run(1_000_000);
    driven.device.dropCarrier(driven.clock.nowUs());
    driven.run(1_000_000);
    expect(driven.carriers).toEqual([false]);
    driven.device.raiseCarrier(driven.clock.nowUs());
    driven.run(1_000_000);
    expect(driven.carriers).toEqual([false, true]);
    expectCleanExchange(driven);
  });

  test('without notifications the carrier is found by asking', () => {
    const driven = new DrivenDevice(fast('tether-rndis', { rndis: { faults: ['no-notification'] } }));
    driven.open();
    driven.run(1_000_000);
    driven.device.dropCarrier(driven.clock.nowUs());
    driven.run(11_000_000);
    expect(driven.carriers).toEqual([false]);
    driven.device.raiseCarrier(driven.clock.nowUs());
    driven.run(11_000_000);
    expect(driven.carriers).toEqual([false, true]);
  });

  test('a device that falls silent for a while is initialised anew', () => {
    const driven = new DrivenDevice(fast('tether-rndis'));
    driven.open();
    driven.run(1_000_000);
    driven.device.injectSilence(0, 60_000_000, driven.clock.nowUs());
    driven.run(120_000_000);
    expect(driven.netif.usbnet.isOpen).toBe(true);
    expectCleanExchange(driven);
    expectClosed(driven);
  });
});

describe('EEM', () => {
  test.each([1, 62, 510, 1000])('echoes of %i bytes are answered, also while frames are sent', (bytes) => {
    const device = fast('board-eem', { eem: { echo: { bytes, everyFrames: 3 }, bundleBytes: 1520 } });
    const driven = new DrivenDevice(device);
    driven.open();
    expectCleanExchange(driven);
    // A wrong answer would have counted as malformed. An idle link has only answers to carry.
    const before = driven.netif.usbnet.stats.txTransfers;
    expect(before).toBeGreaterThan(driven.netif.usbnet.stats.txPackets);
  });
});
