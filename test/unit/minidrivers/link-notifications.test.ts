import { describe, expect, test } from 'vitest';
import { LinkNotifications, type SpeedOrder } from '../../../src/minidrivers/link-notifications.ts';
import { HostDouble } from './conversation.ts';

const up = Uint8Array.of(0xa1, 0x00, 1, 0, 0, 0, 0, 0);
const speedHeader = Uint8Array.of(0xa1, 0x2a, 0, 0, 0, 0, 8, 0);
const speedData = Uint8Array.of(0x80, 0xf0, 0xfa, 0x02, 0x40, 0x4b, 0x4c, 0x00);
const speeds = [50_000_000, 5_000_000] as const;

function listen(order: SpeedOrder = 'downlink-first'): {
  readonly host: HostDouble;
  readonly hear: (bytes: Uint8Array) => void;
} {
  const host = new HostDouble({ bulkOut: 2, txBufferBytes: 1, maxPacketsPerTransfer: 1 });
  const notifications = new LinkNotifications(host, order);
  return { host, hear: (bytes) => notifications.handle(bytes, bytes.length, 0) };
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

describe('a change of speed', () => {
  test.each([
    ['downlink-first', [50_000_000, 5_000_000]],
    ['uplink-first', [5_000_000, 50_000_000]],
  ] as const)('%s: receive and transmit', (order, expected) => {
    const { host, hear } = listen(order);
    hear(joined(speedHeader, speedData));
    expect(host.speeds).toEqual([expected]);
  });

  test('split in two: the next payload is its data', () => {
    const { host, hear } = listen();
    hear(speedHeader);
    expect(host.speeds).toEqual([]);
    hear(speedData);
    expect(host.speeds).toEqual([speeds]);
    hear(up);
    expect(host.links).toEqual([[true, false]]);
  });

  test('cut off in its data: the next payload is taken for them too', () => {
    const { host, hear } = listen();
    hear(joined(speedHeader, speedData.subarray(0, 7)));
    hear(speedData);
    expect(host.speeds).toEqual([speeds]);
  });

  test('what is too short for anything in between is passed over', () => {
    const { host, hear } = listen();
    hear(speedHeader);
    hear(new Uint8Array(0));
    hear(speedData.subarray(0, 7));
    hear(speedData);
    expect(host.speeds).toEqual([speeds]);
  });

  test('the second half may be anything of eight bytes', () => {
    const { host, hear } = listen();
    hear(speedHeader);
    hear(up);
    expect([host.links, host.speeds.length]).toEqual([[], 1]);
  });
});

describe('what else there may be', () => {
  test.each([
    ['nothing', []],
    ['seven bytes', [0xa1, 0, 1, 0, 0, 0, 0]],
    ['a response that is available', [0xa1, 0x01, 0, 0, 0, 0, 0, 0]],
    ['a serial state', [0xa1, 0x20, 0, 0, 0, 0, 2, 0, 3, 0]],
    ['something unknown', [0xa1, 0x99, 1, 0, 0, 0, 0, 0]],
  ])('%s', (_name, bytes) => {
    const { host, hear } = listen();
    hear(Uint8Array.from(bytes));
    expect([host.links, host.speeds]).toEqual([[], []]);
  });

  test.each([
    [0, 0, false],
    [1, 0, true],
    [0, 1, true],
  ])('a connection of value %i, %i', (low, high, link) => {
    const { host, hear } = listen();
    hear(Uint8Array.of(0xa1, 0, low, high, 0, 0, 0, 0));
    expect(host.links).toEqual([[link, false]]);
  });
});
