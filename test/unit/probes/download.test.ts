import { describe, expect, test } from 'vitest';
import { Download, type DownloadSettings } from '../../../src/probes/download.ts';
import { readUdpSourceRequest, udpSourcePort } from '../../../src/wire/udp-source-request.ts';
import { readFrame, udpFrame } from '../ip/link-double.ts';
import { ProbeBench, target, us } from './bench.ts';

const ms = 1000;
const second = 1000 * ms;
const usual: DownloadSettings = { enabled: true, rateBitsPerSecond: 5_000_000, payloadBytes: 1000 };

class DownloadBench extends ProbeBench {
  readonly download = new Download(this.stack, usual);

  /** Polls when it asks to be; the requests that went out. */
  run(
    untilUs: number,
  ): readonly { readonly atUs: number; readonly lifetimeMs: number; readonly rate: number }[] {
    while (this.download.pollAtUs() <= untilUs) {
      this.nowUs = Math.max(this.nowUs, this.download.pollAtUs());
      this.download.poll(this.nowUs);
    }
    this.nowUs = untilUs;
    return this.takeRequests();
  }

  takeRequests(): readonly { readonly atUs: number; readonly lifetimeMs: number; readonly rate: number }[] {
    return this.link.take().flatMap(({ bytes, nowUs }) => {
      const { payload } = readFrame(bytes);
      const port = ((payload[2] ?? 0) << 8) | (payload[3] ?? 0);
      const request = readUdpSourceRequest(payload, 8, payload.length - 8);
      if (port !== udpSourcePort || request?.payloadBytes !== usual.payloadBytes) return [];
      return [{ atUs: nowUs, lifetimeMs: request.lifetimeMs, rate: request.rateBitsPerSecond }];
    });
  }
}

describe('UDP downwards', () => {
  test('the far end is asked again before it would stop by itself', () => {
    const bench = new DownloadBench();
    bench.download.setTarget(target, 0);
    const requests = bench.run(5 * second);
    expect(requests.length).toBeGreaterThanOrEqual(10);
    requests.forEach(({ atUs, lifetimeMs, rate }, index) => {
      expect(rate).toBe(5_000_000);
      const next = requests[index + 1];
      // Two may get lost.
      if (next !== undefined) expect(3 * (next.atUs - atUs)).toBeLessThan(lifetimeMs * ms);
    });
  });

  test('it is told to stop, once, when nobody wants it any more', () => {
    const bench = new DownloadBench();
    bench.download.setTarget(target, 0);
    bench.run(second);
    bench.download.configure({ ...usual, enabled: false }, bench.nowUs);
    expect(bench.takeRequests()).toEqual([{ atUs: second, lifetimeMs: 0, rate: 5_000_000 }]);
    bench.download.setTarget(undefined, bench.nowUs);
    expect(bench.run(5 * second)).toEqual([]);
    expect(bench.download.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('what comes is counted, and is nobody else’s', () => {
    const bench = new DownloadBench();
    bench.download.setTarget(target, 0);
    const frame = udpFrame(target, udpSourcePort, us, 49_001, new Uint8Array(700));
    expect(bench.stack.handleFrame(frame, 0, frame.length, 0)).toBe(true);
    expect(bench.download.receivedBytes).toBe(700);
  });
});
