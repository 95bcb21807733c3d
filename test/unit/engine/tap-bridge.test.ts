import { beforeEach, describe, expect, test } from 'vitest';
import { TapBridge, type TapFrames } from '../../../src/engine/tap-bridge.ts';
import { type Packet, PacketPool } from '../../../src/usbnet/packet.ts';

const macAddress = Uint8Array.of(2, 0, 0, 0, 0, 2);

/** The host's side of a TAP interface, by hand. */
class HandMadeTap implements TapFrames {
  readonly fromHost: Uint8Array[] = [];
  readonly toHost: Uint8Array[] = [];
  reads = 0;
  waits = 0;
  takes = true;
  #ready: (() => void) | undefined;

  read(buffer: Uint8Array): number {
    this.reads++;
    const frame = this.fromHost.shift();
    if (frame === undefined) return 0;
    buffer.set(frame);
    return frame.length;
  }
  write(frame: Uint8Array, length: number): boolean {
    if (this.takes) this.toHost.push(frame.slice(0, length));
    return this.takes;
  }
  whenReadable(ready: () => void): void {
    if (this.#ready !== undefined) return;
    this.waits++;
    this.#ready = ready;
  }
  macAddress(): Uint8Array {
    return macAddress;
  }
  setCarrier(): void {}
  close(): void {}

  /** The thread that waits has seen something. */
  wake(): void {
    const ready = this.#ready;
    this.#ready = undefined;
    ready?.();
  }
}

let tap: HandMadeTap;
let sent: Packet[];
let qdiscLength: number;
let bridge: TapBridge;
/** Real time so far, and what each look at the clock finds to have passed. */
let costUs: number;
let readUs: number;
const frame = new Uint8Array(60);

beforeEach(() => {
  tap = new HandMadeTap();
  sent = [];
  qdiscLength = 0;
  costUs = 0;
  readUs = 1;
  bridge = new TapBridge(
    tap,
    {
      macAddress,
      packets: new PacketPool(2000),
      transmit: (packet) => sent.push(packet) > 0,
      qdisc: {
        get length() {
          return qdiscLength;
        },
        roomPackets: 1000,
      },
    },
    (action) => action(1),
    { nowUs: () => (costUs += readUs) },
  );
});

/** As the session's loop does: polls what says that it is due. */
function turn(nowUs: number): void {
  for (let round = 0; round < 10 && bridge.pollAtUs() <= nowUs; round++) bridge.poll(nowUs);
}

describe('from the host', () => {
  test('while the qdisc is full, a machine that takes long for each frame takes fewer', () => {
    qdiscLength = 950;
    readUs = 30;
    tap.fromHost.push(...Array.from({ length: 100 }, () => frame));
    tap.wake();
    turn(1);
    expect(sent).toHaveLength(3);
    turn(1001);
    expect(sent).toHaveLength(6);
  });

  test('nothing is read before there is something; then all of it, and it waits again', () => {
    turn(1);
    expect(tap.reads).toBe(0);
    tap.fromHost.push(...Array.from({ length: 100 }, () => frame));
    tap.wake();
    turn(1);
    expect(sent).toHaveLength(100);
    expect(tap.waits).toBe(2);
  });

  test('an answer to what was just delivered is read in the same turn, and the wait goes on', () => {
    tap.fromHost.push(...Array.from({ length: 70 }, () => frame));
    bridge.deliver(frame, 0, frame.length);
    turn(1);
    expect(tap.toHost).toHaveLength(1);
    expect(sent).toHaveLength(70);
    expect(tap.waits).toBe(1);
    const { reads } = tap;
    turn(2);
    expect(tap.reads).toBe(reads);
    tap.fromHost.push(frame);
    tap.wake();
    turn(3);
    expect(sent).toHaveLength(71);
  });

  test('while the qdisc is full, frames are taken at a pace, whoever looks', () => {
    qdiscLength = 950;
    tap.fromHost.push(...Array.from({ length: 100 }, () => frame));
    bridge.deliver(frame, 0, frame.length);
    turn(1);
    expect(sent).toHaveLength(32);
    tap.wake();
    bridge.deliver(frame, 0, frame.length);
    turn(500);
    // The loop that was woken looks once more: two batches at the most within a millisecond.
    expect(sent.length).toBeLessThanOrEqual(64);
    qdiscLength = 600;
    turn(5000);
    expect(sent).toHaveLength(100);
  });
});

test('what the host does not take is counted', () => {
  tap.takes = false;
  bridge.deliver(frame, 0, frame.length);
  expect([bridge.framesToHost, bridge.refused]).toEqual([0, 1]);
});
