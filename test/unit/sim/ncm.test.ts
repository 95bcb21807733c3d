import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crc32 } from '../../../src/wire/crc32.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { pattern } from './bare-device.ts';
import { buildNtb, readNtb } from './plain-ntb.ts';
import { bulkIn, bulkOut, interruptIn, personality, SimSetup } from './sim-setup.ts';

const adapter = personality('adapter-100mbit');
const fast = {
  ...adapter,
  fifoBytes: 64 * 1024,
  hostQueueBytes: 1024 * 1024,
  link: { ...adapter.link, upBitsPerSecond: 1e9, downBitsPerSecond: 1e9, downQueueBytes: 1024 * 1024 },
};

const requests = {
  parameters: 0x80,
  getFormat: 0x83,
  setFormat: 0x84,
  getInput: 0x85,
  setInput: 0x86,
  getCrc: 0x89,
  setCrc: 0x8a,
};

function get(setup: SimSetup, request: number, length: number): Uint8Array | string {
  const result = setup.driver.controlIn(0xa1, request, 0, 0, length);
  return result.status === 'completed' ? result.data : result.status;
}

function set(setup: SimSetup, request: number, value: number, data?: Uint8Array<ArrayBuffer>): string {
  return setup.driver.controlOut(0x21, request, value, 0, data).status;
}

function uint32(value: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, value >>> 24);
}

describe('class requests', () => {
  test('GET_NTB_PARAMETERS', () => {
    expect(get(new SimSetup(adapter), requests.parameters, 28)).toEqual(
      bytesOf('1C 00 03 00 | 00 40 00 00 04 00 00 00 04 00 00 00 | 00 40 00 00 04 00 00 00 04 00 00 00'),
    );
  });

  test('format, CRC mode and input size are kept, and refused where they make no sense', () => {
    const setup = new SimSetup(adapter);
    const state = (): readonly unknown[] => [
      get(setup, requests.getFormat, 2),
      get(setup, requests.getCrc, 2),
      get(setup, requests.getInput, 4),
    ];
    expect(state()).toEqual([bytesOf('00 00'), bytesOf('00 00'), bytesOf('00 40 00 00')]);
    expect(set(setup, requests.setFormat, 1)).toBe('completed');
    expect(set(setup, requests.setCrc, 1)).toBe('completed');
    expect(set(setup, requests.setInput, 0, uint32(8192))).toBe('completed');
    const chosen = [bytesOf('01 00'), bytesOf('01 00'), bytesOf('00 20 00 00')];
    expect(state()).toEqual(chosen);
    expect(set(setup, requests.setFormat, 2)).toBe('stall');
    expect(set(setup, requests.setCrc, 2)).toBe('stall');
    for (const size of [2047, 16_385, 0]) {
      expect(set(setup, requests.setInput, 0, uint32(size))).toBe('stall');
    }
    expect(set(setup, requests.setInput, 0, new Uint8Array(2))).toBe('stall');
    expect(set(setup, requests.setInput, 0, new Uint8Array(8).fill(0x10))).toBe('stall');
    expect(get(setup, 0x81, 6)).toBe('stall');
    expect(state()).toEqual(chosen);
  });

  test('what the host chose before it opens the data interface holds; closing makes it void', () => {
    const setup = new SimSetup(adapter);
    set(setup, requests.setFormat, 1);
    setup.open();
    expect(get(setup, requests.getFormat, 2)).toEqual(bytesOf('01 00'));
    setup.driver.setInterface(1, 0);
    expect(get(setup, requests.getFormat, 2)).toEqual(bytesOf('00 00'));
  });

  test('the packet filter', () => {
    expect(set(new SimSetup(adapter), 0x43, 0x0c)).toBe('completed');
  });

  test('notifications: speed, then connection', () => {
    const setup = new SimSetup(adapter);
    setup.driver.onDone = (transfer, nowUs) => setup.driver.transport.submit(transfer, nowUs);
    setup.driver.submit(setup.driver.in(interruptIn, 16));
    setup.open();
    setup.driver.run(200_000);
    expect(setup.driver.reports.map(({ bytes }) => bytes)).toEqual([
      bytesOf('A1 2A 00 00 00 00 08 00 | 00 E1 F5 05 | 00 E1 F5 05'),
      bytesOf('A1 00 01 00 00 00 00 00'),
    ]);
  });
});

test('our CRC-32 is that of everyone', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      // zlib.crc32 came with Node 20.15.
      expect(crc32(bytes, 0, bytes.length)).toBe(zlibCrc32(bytes));
    }),
  );
  expect(crc32(new TextEncoder().encode('123456789'), 0, 9)).toBe(0xcbf43926);
});

function withCrc(frame: Uint8Array): Uint8Array {
  return Uint8Array.from([...frame, ...uint32(crc32(frame, 0, frame.length))]);
}

describe.each([
  [16, false],
  [32, false],
  [16, true],
  [32, true],
] as const)('NTB%i, CRC %s', (format, crc) => {
  function setUp(what = fast): SimSetup {
    const setup = new SimSetup(what);
    set(setup, requests.setFormat, format === 32 ? 1 : 0);
    set(setup, requests.setCrc, crc ? 1 : 0);
    setup.open();
    return setup;
  }
  const datagramOf = (frame: Uint8Array): Uint8Array => (crc ? withCrc(frame) : frame);

  test('frames come back from the far host as they went, byte for byte', () => {
    const payloads = fc.array(fc.array(fc.uint8Array({ maxLength: 1472 }), { minLength: 1, maxLength: 9 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(payloads, (ntbs) => {
        const setup = setUp();
        const received: Uint8Array[] = [];
        let sequence = 0;
        setup.receive(16_384, 4, (bytes) => {
          const ntb = readNtb(format, bytes, crc);
          expect(ntb.sequence).toBe(sequence++);
          received.push(...ntb.datagrams);
        });
        for (const [i, frames] of ntbs.entries()) {
          const datagrams = frames.map((payload) => datagramOf(setup.udp(7, payload)));
          setup.driver.submit(setup.driver.out(bulkOut, buildNtb(format, i, datagrams, crc), true));
        }
        setup.driver.run(20_000);
        expect(received).toEqual(ntbs.flat().map((payload) => datagramOf(setup.echoOf(payload))));
        expect(setup.inspect()).toMatchObject({ framesInUse: 0, fifoFillBytes: 0 });
      }),
      { numRuns: 20 },
    );
  });

  test('what waits is packed: at most 32 datagrams, and no more than the host asked for', () => {
    for (const [payloadBytes, inBytes, expected] of [
      [20, 16_384, [32, 32, 6]],
      [1472, 16_384, undefined],
      [1472, 4096, undefined],
      [100, 2048, undefined],
    ] as const) {
      const setup = new SimSetup(fast);
      set(setup, requests.setFormat, format === 32 ? 1 : 0);
      set(setup, requests.setCrc, crc ? 1 : 0);
      set(setup, requests.setInput, 0, uint32(inBytes));
      setup.open();
      for (let i = 0; i < 70; i++) {
        const ntb = buildNtb(format, i, [datagramOf(setup.udp(7, pattern(payloadBytes, i)))], crc);
        setup.driver.submit(setup.driver.out(bulkOut, ntb, true));
      }
      setup.driver.run(20_000);
      const counts: number[] = [];
      const frames: Uint8Array[] = [];
      setup.receive(inBytes, 8, (bytes) => {
        const { datagrams } = readNtb(format, bytes, crc);
        counts.push(datagrams.length);
        frames.push(...datagrams);
      });
      setup.driver.run(20_000);
      expect(frames).toEqual(
        Array.from({ length: 70 }, (_, i) => datagramOf(setup.echoOf(pattern(payloadBytes, i)))),
      );
      if (expected !== undefined) expect(counts).toEqual(expected);
      expect(Math.max(...counts)).toBeLessThanOrEqual(32);
      // Only the last one may have room left for another frame.
      expect(counts.length).toBeLessThan(
        70 / Math.min(32, Math.floor((inBytes - 300) / (payloadBytes + 64))) + 2,
      );
    }
  });
});

test.each([16, 32] as const)('a wrong CRC in an NTB%i costs the frame', (format) => {
  const setup = new SimSetup(fast);
  set(setup, requests.setFormat, format === 32 ? 1 : 0);
  set(setup, requests.setCrc, 1);
  setup.open();
  const bad = withCrc(setup.udp(9, pattern(100)));
  bad[bad.length - 1] = (bad[bad.length - 1] ?? 0) ^ 1;
  const good = withCrc(setup.udp(9, pattern(50)));
  setup.driver.submit(setup.driver.out(bulkOut, buildNtb(format, 0, [bad, good], true)));
  setup.driver.run(10_000);
  const { device, farHost, fifoFillBytes } = setup.inspect();
  expect([device.malformedFromHost, farHost.udpSunkBytes, fifoFillBytes]).toEqual([1, 50, 0]);
});

describe('messages of the largest size', () => {
  test('an NTB as large as can be needs no short packet', () => {
    const setup = new SimSetup(fast);
    setup.open();
    const ntb = new Uint8Array(16_384);
    ntb.set(buildNtb(16, 0, [setup.udp(9, pattern(1000))]));
    for (let i = 0; i < 3; i++) setup.driver.submit(setup.driver.out(bulkOut, ntb));
    // With one all the same; the empty packet is no message.
    setup.driver.submit(setup.driver.out(bulkOut, ntb, true));
    setup.driver.submit(setup.driver.out(bulkOut, ntb));
    setup.driver.run(10_000);
    const { device, farHost } = setup.inspect();
    expect(device).toMatchObject({ messagesFromHost: 5, malformedFromHost: 0 });
    expect(farHost.udpSunkDatagrams).toBe(5);
  });

  test('one that is larger is dropped', () => {
    const setup = new SimSetup(fast);
    setup.open();
    setup.driver.submit(setup.driver.out(bulkOut, new Uint8Array(20_000)));
    setup.driver.submit(setup.driver.out(bulkOut, buildNtb(16, 0, [setup.udp(9, pattern(10))])));
    setup.driver.run(10_000);
    const { device, farHost, fifoFillBytes } = setup.inspect();
    expect(device.malformedFromHost).toBeGreaterThan(0);
    expect([farHost.udpSunkBytes, fifoFillBytes]).toEqual([10, 0]);
  });

  test('a full NTB to the host fills its transfer; there is no empty packet behind it', () => {
    // 2,048 bytes: header 12, table 8 + 33 × 4, then a datagram from 154 on.
    const setup = new SimSetup(fast);
    set(setup, requests.setInput, 0, uint32(2048));
    setup.open();
    const sizes = [1472 - 42, 2048 - 154 - 1472 - 42];
    for (const size of sizes) {
      setup.driver.submit(setup.driver.out(bulkOut, buildNtb(16, 0, [setup.udp(7, pattern(size))])));
    }
    setup.driver.run(10_000);
    const lengths: number[] = [];
    setup.receive(2048, 4, (bytes) => lengths.push(bytes.length));
    setup.driver.run(10_000);
    expect(lengths).toEqual([2048]);
  });
});

describe('an NTB that is none', () => {
  test('random bytes never get past it, and never stay in it', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 }), (messages) => {
        const setup = new SimSetup(fast);
        setup.open();
        for (const message of messages) setup.driver.submit(setup.driver.out(bulkOut, message, true));
        setup.driver.run(50_000);
        const { device, fifoFillBytes, framesInUse, farHost } = setup.inspect();
        expect(device.malformedFromHost).toBe(messages.filter(({ length }) => length > 0).length);
        expect([fifoFillBytes, framesInUse, farHost.frames]).toEqual([0, 0, 0]);
      }),
      { numRuns: 30 },
    );
  });

  test('one with a single byte changed does no harm', () => {
    const setup = new SimSetup(fast);
    setup.open();
    const ntb = buildNtb(16, 0, [setup.udp(9, pattern(20)), setup.udp(9, pattern(30))]);
    for (let i = 0; i < ntb.length; i++) {
      const changed = ntb.slice();
      changed[i] = (changed[i] ?? 0) ^ 0x55;
      setup.driver.submit(setup.driver.out(bulkOut, changed));
      setup.driver.run(1000);
    }
    setup.driver.run(50_000);
    expect(setup.inspect()).toMatchObject({ fifoFillBytes: 0, framesInUse: 0 });
  });
});

test('the FIFO holds whole NTBs that are larger than itself', () => {
  const setup = new SimSetup({ ...adapter, fifoBytes: 4096 });
  setup.open();
  const frames = Array.from({ length: 10 }, (_, i) => setup.udp(9, pattern(1472, i)));
  for (let i = 0; i < 20; i++) setup.driver.submit(setup.driver.out(bulkOut, buildNtb(16, i, frames), true));
  setup.driver.run(100_000);
  expect(setup.inspect()).toMatchObject({ fifoFillBytes: 0, farHost: { udpSunkDatagrams: 200 } });
});

test('an interface that is closed in the middle of an NTB starts afresh', () => {
  const setup = new SimSetup(fast);
  setup.open();
  setup.driver.submit(setup.driver.out(bulkOut, new Uint8Array(2048)));
  setup.driver.run(1000);
  const receiving = setup.driver.in(bulkIn, 16_384);
  setup.driver.submit(receiving);
  setup.driver.setInterface(1, 0);
  expect(receiving.status).toBe('cancelled');
  setup.open();
  setup.driver.submit(setup.driver.out(bulkOut, buildNtb(16, 0, [setup.udp(9, pattern(10))])));
  setup.driver.run(1000);
  expect(setup.inspect()).toMatchObject({ fifoFillBytes: 0, farHost: { udpSunkBytes: 10 } });
});
