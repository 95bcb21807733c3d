import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeviceFifo } from '../../../src/sim/device-fifo.ts';

/** A frame of that length has arrived and waits for the link. */
function put(fifo: DeviceFifo, bytes: number): void {
  fifo.add(bytes);
  fifo.commit(bytes);
}

describe('acceptance', () => {
  test('whole packets while there is room, then NAK', () => {
    const fifo = new DeviceFifo(4096);
    expect(fifo.admit(1514, 1024)).toBe(1514);
    put(fifo, 1514);
    put(fifo, 1514);
    // 1,068 bytes are free: one packet of the next transfer, not its short one.
    expect(fifo.admit(1514, 1024)).toBe(1024);
    fifo.add(1024);
    expect(fifo.admit(490, 1024)).toBe(0);
    expect(fifo.naks).toBe(1);
    expect(fifo.fillBytes).toBe(4052);
  });

  test('after a NAK nothing is taken until the refused packet has room', () => {
    const fifo = new DeviceFifo(3000);
    put(fifo, 1000);
    put(fifo, 1000);
    put(fifo, 500);
    expect(fifo.admit(1024, 1024)).toBe(0);
    // A smaller one would fit, but the device is not asked about sizes.
    expect(fifo.admit(100, 1024)).toBe(0);
    expect(fifo.release(500)).toBe(false);
    expect(fifo.release(1000)).toBe(true);
    expect(fifo.admit(1024, 1024)).toBe(1024);
  });

  test('hysteresis: once full, so many bytes must drain first', () => {
    const fifo = new DeviceFifo(10_000, 4000);
    for (let i = 0; i < 10; i++) put(fifo, 1000);
    expect(fifo.admit(500, 1024)).toBe(0);
    expect([1, 2, 3].map(() => fifo.release(1000))).toEqual([false, false, false]);
    expect(fifo.admit(500, 1024)).toBe(0);
    expect(fifo.release(1000)).toBe(true);
    expect(fifo.admit(5000, 1024)).toBe(3072);
  });

  test('a hysteresis larger than what is in it ends when all has drained', () => {
    const fifo = new DeviceFifo(1000, 100_000);
    put(fifo, 1000);
    expect(fifo.admit(500, 1024)).toBe(0);
    expect(fifo.release(1000)).toBe(true);
    expect(fifo.admit(500, 1024)).toBe(500);
  });

  test('a message larger than all of it comes in alone, packet by packet', () => {
    const fifo = new DeviceFifo(0);
    expect(fifo.admit(1514, 512)).toBe(512);
    fifo.add(512);
    expect(fifo.admit(1002, 512)).toBe(512);
    fifo.add(512);
    expect(fifo.admit(490, 512)).toBe(490);
    put(fifo, 490);
    fifo.commit(1024);
    expect(fifo.admit(100, 512)).toBe(0);
    expect(fifo.release(1514)).toBe(true);
    expect(fifo.fillBytes).toBe(0);
  });

  test('framing that is thrown away makes room as well', () => {
    const fifo = new DeviceFifo(2000);
    fifo.add(1000);
    fifo.commit(800);
    fifo.add(1000);
    expect(fifo.admit(200, 1024)).toBe(0);
    expect(fifo.discard(200)).toBe(true);
    expect(fifo.admit(200, 1024)).toBe(200);
  });
});

test('it never holds more than its capacity or one message, and never blocks for good', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 20_000 }),
      fc.integer({ min: 0, max: 20_000 }),
      fc.constantFrom(64, 512, 1024),
      fc.array(fc.integer({ min: 1, max: 16_384 }), { minLength: 1, maxLength: 30 }),
      (capacity, hysteresis, packet, messages) => {
        const fifo = new DeviceFifo(capacity, hysteresis);
        const waiting: number[] = [];
        for (const message of messages) {
          let left = message;
          while (left > 0) {
            const taken = fifo.admit(left, packet);
            if (taken > 0) {
              expect(taken === left || taken % packet === 0).toBe(true);
              fifo.add(taken);
              left -= taken;
              expect(fifo.fillBytes <= capacity || fifo.fillBytes === message - left).toBe(true);
            } else {
              // There is always something whose departure can open it again.
              const oldest = waiting.shift();
              expect(oldest).toBeDefined();
              fifo.release(oldest ?? 0);
            }
          }
          fifo.commit(message);
          waiting.push(message);
        }
        for (const message of waiting) fifo.release(message);
        expect(fifo.fillBytes).toBe(0);
      },
    ),
    { numRuns: 300 },
  );
});
