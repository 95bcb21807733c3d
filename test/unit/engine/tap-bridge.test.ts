import { beforeEach, describe, expect, test } from 'vitest';
import { TapBridge, type TapFrames } from '../../../src/engine/tap-bridge.ts';
import { type Packet, PacketPool } from '../../../src/usbnet/packet.ts';
import { headerBytes, longSegment, readFrame } from '../netif/long-segment.ts';

const macAddress = Uint8Array.of(2, 0, 0, 0, 0, 2);

/** The host's side of a TAP interface, by hand. */
class HandMadeTap implements TapFrames {
  readonly fromHost: Uint8Array[] = [];
  readonly toHost: Uint8Array[] = [];
  reads = 0;
  waits = 0;
  takes = true;
  header: TapFrames['header'] = 'none';
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
let packets: PacketPool;
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
  packets = new PacketPool(2000);
  bridge = open();
});

function open(): TapBridge {
  return new TapBridge(
    tap,
    {
      macAddress,
      packets,
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
}

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

describe('with a header in front of each frame', () => {
  /** 45 frames. */
  const segment = longSegment({
    protocol: 'tcp',
    version: 4,
    vlan: false,
    networkOptions: 0,
    tcpOptions: 12,
    flags: 0x18,
    sequence: 1,
    identification: 1,
    payload: Uint8Array.from({ length: 45 * 1448 }, (_, index) => index),
    gsoSize: 1448,
  });
  const plain = new Uint8Array(headerBytes + frame.length);
  const sequences = (): readonly number[] =>
    sent.map((packet) => (readFrame(packet.bytes.subarray(0, packet.length)).sequence - 1) / 1448);
  const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

  function reopen(packetLimit: number): void {
    tap = new HandMadeTap();
    tap.header = 'virtio';
    packets = new PacketPool(packetLimit);
    bridge = open();
  }

  beforeEach(() => reopen(2000));

  test('a long segment comes as frames, with the priority of each, and every frame counts', () => {
    tap.fromHost.push(segment, plain, plain);
    tap.wake();
    turn(1);
    expect([bridge.framesFromHost, bridge.readsFromHost]).toEqual([47, 3]);
    expect(sequences().slice(0, 45)).toEqual(upTo(45));
    expect(sent.map(({ priority }) => priority)).toEqual([...upTo(45).map(() => 6), 0, 0]);
    expect(sent.at(-1)?.length).toBe(frame.length);
    expect(tap.waits).toBe(2);
  });

  test('what there is no packet for is kept, and goes on before anything else is read', () => {
    reopen(20);
    tap.fromHost.push(segment, plain);
    tap.wake();
    turn(1);
    expect(sent).toHaveLength(20);
    expect(tap.reads).toBe(1);
    expect(bridge.pollAtUs()).toBe(1001);
    turn(1001);
    expect(sent).toHaveLength(20);
    const seen = sequences();
    for (const packet of sent.splice(0)) packet.release();
    turn(2001);
    expect([...seen, ...sequences()]).toEqual(upTo(40));
    for (const packet of sent.splice(0)) packet.release();
    turn(3001);
    expect(sequences().slice(0, 5)).toEqual([40, 41, 42, 43, 44]);
    expect([bridge.framesFromHost, tap.reads]).toEqual([46, 3]);
  });

  test('what is kept goes on though nobody has waked: the kernel no longer knows of it', () => {
    reopen(20);
    tap.fromHost.push(segment);
    bridge.deliver(frame, 0, frame.length);
    turn(1);
    expect([sent.length, tap.waits]).toEqual([20, 1]);
    for (const packet of sent.splice(0)) packet.release();
    turn(1001);
    expect(sent).toHaveLength(20);
  });

  test('while the qdisc is full, a segment is cut for as long as that may take, and goes on a while later', () => {
    qdiscLength = 950;
    readUs = 10;
    tap.fromHost.push(segment, segment);
    tap.wake();
    turn(1);
    expect([sent.length, tap.reads]).toEqual([9, 1]);
    turn(500);
    expect(sent).toHaveLength(9);
    for (let atUs = 1001; atUs <= 5001; atUs += 1000) turn(atUs);
    expect([sent.length, tap.reads]).toEqual([54, 2]);
    qdiscLength = 0;
    turn(6001);
    expect(sequences()).toEqual([...upTo(45), ...upTo(45)]);
  });

  test('while the qdisc is full, a packet of priority waits behind few reads, however many frames those are', () => {
    qdiscLength = 950;
    tap.fromHost.push(segment, segment, plain);
    tap.wake();
    turn(1);
    expect([sent.length, tap.reads]).toEqual([91, 4]);
    tap.fromHost.push(...Array.from({ length: 50 }, () => plain));
    tap.wake();
    turn(1001);
    expect([sent.length, tap.reads]).toEqual([91 + 32, 4 + 32]);
  });

  test('a header that lies is counted and costs one look; what comes behind it is taken', () => {
    const lie = segment.slice();
    lie.fill(0, 4, 6);
    tap.fromHost.push(lie, lie.slice(0, 5), plain);
    tap.wake();
    turn(1);
    expect([bridge.malformedFromHost, bridge.framesFromHost]).toEqual([2, 1]);
    expect(packets.inUse).toBe(1);
  });

  test('a received frame goes to the host behind a header that asks for nothing', () => {
    const bytes = Uint8Array.from({ length: 100 }, (_, index) => index);
    bridge.deliver(bytes, 20, 60);
    expect(tap.toHost).toEqual([Uint8Array.from([...new Uint8Array(headerBytes), ...bytes.slice(20, 80)])]);
    expect(bridge.framesToHost).toBe(1);
  });

  /** What is received of the segment, in a transfer. */
  function receive(count: number): void {
    tap.fromHost.push(segment);
    tap.wake();
    turn(1);
    for (const { bytes, length } of sent.splice(0).slice(0, count)) bridge.deliver(bytes, 0, length);
  }

  test('received segments that follow one another are written as one when nothing more is at hand', () => {
    receive(40);
    expect(tap.toHost).toHaveLength(0);
    // Whatever the pace at which frames are taken: at once.
    expect(bridge.pollAtUs()).toBeLessThanOrEqual(1);
    bridge.poll(1);
    expect(tap.toHost).toHaveLength(1);
    expect(tap.toHost[0]?.length).toBe(headerBytes + 66 + 40 * 1448);
    expect([bridge.framesToHost, bridge.writesToHost]).toEqual([40, 1]);
  });

  test('what the host answers to them is read in the same turn', () => {
    receive(2);
    const { reads } = tap;
    tap.fromHost.push(plain);
    turn(1);
    expect([tap.toHost.length, sent.length, tap.reads]).toEqual([1, 1, reads + 2]);
  });

  test('every frame of what the host does not take is counted', () => {
    tap.takes = false;
    receive(5);
    bridge.close();
    expect([bridge.framesToHost, bridge.refused]).toEqual([0, 5]);
  });

  test('after the end nothing that was kept goes anywhere', () => {
    reopen(20);
    tap.fromHost.push(segment);
    tap.wake();
    turn(1);
    bridge.close();
    for (const packet of sent.splice(0)) packet.release();
    expect(bridge.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
    bridge.poll(5000);
    expect(sent).toHaveLength(0);
  });
});
