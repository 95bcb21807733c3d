import { describe, expect, test } from 'vitest';
import { FramePool } from '../../../src/sim/frame.ts';
import { UdpSource } from '../../../src/sim/udp-source.ts';
import {
  readUdpSourceRequest,
  udpSourcePort,
  type UdpSourceRequest,
  udpSourceRequestLength,
  writeUdpSourceRequest,
} from '../../../src/wire/udp-source-request.ts';
import { readFrame } from '../ip/link-double.ts';

const second = 1_000_000;
const hostMac = Uint8Array.of(2, 0, 0, 0, 0, 1);
const clientMac = Uint8Array.of(2, 0, 0, 0, 0, 2);
const hostAddress = 0x0a400001;
const clientAddress = 0x0a400002;

class Bench {
  readonly pool = new FramePool();
  linkBitsPerSecond = 50e6;
  readonly frames: { readonly bytes: Uint8Array; readonly atUs: number }[] = [];
  readonly source = new UdpSource(
    {
      pool: this.pool,
      linkBitsPerSecond: () => this.linkBitsPerSecond,
      send: (frame, atUs) => {
        this.frames.push({ bytes: frame.bytes.slice(0, frame.length), atUs });
        this.pool.give(frame);
      },
    },
    hostMac,
  );

  ask(request: Partial<UdpSourceRequest>, nowUs: number): void {
    const client = { macAddress: clientMac, address: clientAddress, port: 49_001 };
    const usual = { rateBitsPerSecond: 1e6, payloadBytes: 972, lifetimeMs: 2000 };
    this.source.handleRequest({ ...usual, ...request }, client, hostAddress, nowUs);
  }

  run(untilUs: number): number {
    const before = this.frames.length;
    while (this.source.pollAtUs() <= untilUs) this.source.poll(this.source.pollAtUs());
    return this.frames.length - before;
  }
}

describe('a sender of UDP at the far end', () => {
  test('sends at the rate that it was asked for, in IP bytes, to who asked', () => {
    const bench = new Bench();
    bench.ask({}, 0);
    // 1,000 bytes each.
    expect(bench.run(second)).toBe(126);
    const frame = readFrame(bench.frames[7]?.bytes ?? new Uint8Array(34));
    expect(frame).toMatchObject({
      destinationMac: clientMac,
      sourceMac: hostMac,
      source: hostAddress,
      destination: clientAddress,
      totalLength: 1000,
      headerChecksum: true,
      udpChecksum: true,
    });
    expect([...frame.payload.subarray(0, 4)]).toEqual([udpSourcePort >> 8, udpSourcePort & 0xff, 0xbf, 0x69]);
    expect(bench.pool.inUse).toBe(0);
  });

  test('stops when it is no longer asked, and when it is told to', () => {
    const bench = new Bench();
    bench.ask({ lifetimeMs: 500 }, 0);
    bench.run(10 * second);
    expect(bench.frames.at(-1)?.atUs).toBeLessThanOrEqual(second / 2);
    bench.ask({}, 20 * second);
    bench.run(20.1 * second);
    bench.ask({ lifetimeMs: 0 }, 20.1 * second);
    expect(bench.run(30 * second)).toBe(0);
  });

  test('without a rate: a little more than the link carries, also once that stood still', () => {
    const bench = new Bench();
    bench.linkBitsPerSecond = 0;
    bench.ask({ rateBitsPerSecond: 0, lifetimeMs: 5000 }, 0);
    expect(bench.run(second)).toBe(0);
    bench.linkBitsPerSecond = 8e6;
    const frames = bench.run(2 * second);
    expect(frames).toBeGreaterThan(1000);
    expect(frames).toBeLessThan(1100);
  });
});

describe('the request', () => {
  test('is read as it was written, at any offset', () => {
    const bytes = new Uint8Array(40).fill(0xff);
    const request = { rateBitsPerSecond: 12_345_000, payloadBytes: 1472, lifetimeMs: 2000 };
    writeUdpSourceRequest(bytes, 7, request);
    expect(readUdpSourceRequest(bytes, 7, udpSourceRequestLength)).toEqual(request);
    expect(bytes[7 + udpSourceRequestLength]).toBe(0xff);
  });

  test('anything else is none', () => {
    const bytes = new Uint8Array(udpSourceRequestLength);
    expect(readUdpSourceRequest(bytes, 0, bytes.length)).toBeUndefined();
    writeUdpSourceRequest(bytes, 0, { rateBitsPerSecond: 0, payloadBytes: 16, lifetimeMs: 1 });
    expect(readUdpSourceRequest(bytes, 0, bytes.length - 1)).toBeUndefined();
    bytes[4] = 2;
    expect(readUdpSourceRequest(bytes, 0, bytes.length)).toBeUndefined();
  });
});
