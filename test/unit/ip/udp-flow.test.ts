import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IpStack } from '../../../src/ip/ip-stack.ts';
import { UdpFlow } from '../../../src/ip/udp-flow.ts';
import { arpFrame, ip, LinkDouble, ourMac, peerMac, readFrame } from './link-double.ts';

const us = ip('10.9.0.2');
const target = ip('10.9.0.1');
const second = 1_000_000;

function makeFlow(payloadBytes: number): {
  readonly link: LinkDouble;
  readonly stack: IpStack;
  readonly flow: UdpFlow;
  readonly teach: (mac: Uint8Array, nowUs: number) => void;
} {
  const link = new LinkDouble();
  const stack = new IpStack(link);
  stack.configure({ address: us, prefixLength: 24, gateway: undefined });
  const flow = new UdpFlow({
    stack,
    destination: target,
    sourcePort: 49_000,
    destinationPort: 9,
    tos: 0x08,
    payloadBytes,
  });
  const teach = (mac: Uint8Array, nowUs: number): void => {
    const frame = arpFrame('reply', mac, target, us);
    stack.handleFrame(frame, 0, frame.length, nowUs);
  };
  stack.resolve(target, 0);
  teach(peerMac, 0);
  link.take();
  return { link, stack, flow, teach };
}

describe('every datagram', () => {
  test.each([0, 1, 3, 4, 5, 17, 64, 1471, 1472])(
    'of %i bytes is right: headers, checksums, number',
    (size) => {
      const { link, flow } = makeFlow(size);
      for (let i = 0; i < 300; i++) expect(flow.send(i, 0)).toBe('queued');
      const frames = link.take();
      const identifications = new Set<number>();
      frames.forEach(({ bytes, tag, priority }, i) => {
        const frame = readFrame(bytes);
        expect(frame).toMatchObject({
          destinationMac: peerMac,
          sourceMac: ourMac,
          tos: 0x08,
          totalLength: 28 + size,
          protocol: 17,
          source: us,
          destination: target,
          headerChecksum: true,
          udpChecksum: true,
        });
        identifications.add(frame.identification);
        const view = new DataView(frame.payload.buffer, frame.payload.byteOffset);
        expect([view.getUint16(0), view.getUint16(2), view.getUint16(4)]).toEqual([49_000, 9, 8 + size]);
        if (size >= 4) expect(view.getUint32(8)).toBe(i);
        expect([tag, priority]).toEqual([i, 2]);
      });
      expect([frames.length, identifications.size]).toEqual([300, 300]);
      expect([flow.sent, flow.ipPacketBytes, link.packets.inUse]).toEqual([300, 28 + size, 0]);
    },
  );

  test('is right for any size and at any number', () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 1472 }), fc.integer({ min: 1, max: 200 }), (size, count) => {
        const { link, flow } = makeFlow(size);
        for (let i = 0; i < count; i++) flow.send(0, 0);
        const last = readFrame(link.take().at(-1)?.bytes ?? new Uint8Array(34));
        expect([last.headerChecksum, last.udpChecksum]).toEqual([true, true]);
      }),
      { numRuns: 50 },
    );
  });

  test('its identification has a right header checksum around 65,535 too', () => {
    const { link, stack, flow } = makeFlow(8);
    for (let i = 0; i < 65_400; i++) stack.nextIdentification();
    for (let i = 0; i < 300; i++) flow.send(0, 0);
    expect(link.take().every(({ bytes }) => readFrame(bytes).headerChecksum)).toBe(true);
  });
});

describe('what becomes of a datagram', () => {
  test('unresolved: nothing was sent, the number is not used up', () => {
    const { stack, flow, teach } = makeFlow(8);
    stack.configure({ address: us, prefixLength: 24, gateway: undefined });
    expect([flow.send(0, 0), flow.sent]).toEqual(['unresolved', 0]);
    teach(peerMac, 10);
    expect([flow.send(0, 20), flow.sent]).toEqual(['queued', 1]);
  });

  test('dropped: the interface did not take it, or there was no packet to be had', () => {
    const { link, flow } = makeFlow(8);
    link.accepts = false;
    expect(flow.send(0, 0)).toBe('dropped');
    link.accepts = true;
    while (link.packets.take() !== undefined);
    expect(flow.send(0, 0)).toBe('dropped');
  });
});

describe('what changes under it is taken up within a second', () => {
  test('the MAC address of the next hop', () => {
    const { link, flow, teach } = makeFlow(8);
    flow.send(0, 0);
    const moved = Uint8Array.of(2, 0, 0, 0, 0, 0x99);
    teach(moved, 500_000);
    flow.send(0, second);
    const [before, after] = link.take().map(({ bytes }) => readFrame(bytes));
    expect([before?.destinationMac, after?.destinationMac]).toEqual([peerMac, moved]);
    expect(after?.udpChecksum).toBe(true);
  });

  test('our own address; the numbers go on', () => {
    const { link, stack, flow, teach } = makeFlow(8);
    flow.send(0, 0);
    stack.configure({ address: ip('10.9.0.77'), prefixLength: 24, gateway: undefined });
    expect(flow.send(0, second)).toBe('unresolved');
    teach(peerMac, second);
    expect(flow.send(0, second + 1)).toBe('queued');
    const last = readFrame(link.take().at(-1)?.bytes ?? new Uint8Array(34));
    expect([last.source, last.udpChecksum]).toEqual([ip('10.9.0.77'), true]);
    expect(new DataView(last.payload.buffer, last.payload.byteOffset).getUint32(8)).toBe(1);
  });

  test('a next hop that is in use for long is confirmed', () => {
    const { link, flow } = makeFlow(8);
    for (let nowUs = 0; nowUs <= 32 * second; nowUs += second / 4) flow.send(0, nowUs);
    expect(link.take().filter(({ bytes }) => readFrame(bytes).type === 0x0806).length).toBeGreaterThan(0);
  });
});
