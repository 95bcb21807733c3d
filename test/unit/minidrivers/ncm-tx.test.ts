import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NcmTx, type NcmTxOptions } from '../../../src/minidrivers/ncm-tx.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import { readUint16Le } from '../../../src/wire/byte-order.ts';
import { NtbReader } from '../../../src/wire/ntb-reader.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { NtbCapture } from '../wire/ntb-capture.ts';
import { HostDouble } from './conversation.ts';

/** With a Linux gadget at high speed. */
const usual: NcmTxOptions = {
  geometry: { format: 'ntb16', ndpModulus: 4, modulus: 4, remainder: 2, maxDatagrams: 40, ndpToEnd: false },
  maxNtbBytes: 16_384,
  minTxPacketBytes: 14_848,
  maxPacketBytes: 512,
  sendZlp: false,
  withCrc: false,
  txTimerUs: 0,
};

class Packer {
  readonly host: HostDouble;
  readonly tx: NcmTx;
  readonly pool = new PacketPool(1000);

  constructor(options: Partial<NcmTxOptions> = {}) {
    const all = { ...usual, ...options };
    this.host = new HostDouble({
      bulkOut: 2,
      txBufferBytes: all.maxNtbBytes,
      maxPacketsPerTransfer: all.geometry.maxDatagrams,
    });
    this.tx = new NcmTx(this.host, all);
  }

  /** Adds a frame of bytes that show its tag. */
  add(length: number, tag = 0, nowUs = 0): Transfer | undefined {
    const packet = this.pool.take();
    if (packet === undefined) throw new Error('no packet');
    packet.length = length;
    packet.tag = tag;
    packet.bytes.fill(tag & 0xff, 0, length);
    return this.tx.add(packet, nowUs);
  }

  flush(nowUs = 0): Transfer | undefined {
    return this.tx.add(null, nowUs);
  }
}

/** The datagrams of an NTB, as a device reads them: length and first byte of each. */
function datagramsOf(transfer: Transfer | undefined): readonly (readonly [number, number])[] {
  if (transfer === undefined) throw new Error('there is no NTB');
  const sink = new NtbCapture();
  const reader = new NtbReader({ format: 'ntb16', maxNtbBytes: 65_536, sink });
  expect(reader.read(transfer.buffer, 0, transfer.length)).toBe('ok');
  // What the header says is what is sent.
  expect(readUint16Le(transfer.buffer, 8)).toBe(transfer.length);
  return sink.datagrams.map(({ bytes }) => [bytes.length, bytes[0] ?? -1]);
}

function tagsOf(transfer: Transfer | undefined): readonly number[] {
  return [...(transfer?.packetTags ?? [])].slice(0, transfer?.packetCount);
}

describe('one NTB', () => {
  test('a lone frame of 60 bytes makes 246 bytes (spec section 9)', () => {
    const packer = new Packer();
    expect(packer.add(60, 0xa5, 7)).toBeUndefined();
    expect([packer.tx.hasPending, packer.pool.inUse]).toEqual([true, 0]);
    const transfer = packer.flush(9);
    expect(transfer).toMatchObject({ length: 246, payloadBytes: 60, packetCount: 1 });
    expect(transfer?.packetStartUs[0]).toBe(7);
    expect(transfer?.buffer.subarray(0, 28)).toEqual(
      bytesOf('4E 43 4D 48 0C 00 00 00 F6 00 0C 00 | 4E 43 4D 30 10 00 00 00 BA 00 3C 00 00 00 00 00'),
    );
    expect(datagramsOf(transfer)).toEqual([[60, 0xa5]]);
    expect(packer.tx.hasPending).toBe(false);
  });

  test('frames that come before the flush share it, in order', () => {
    const packer = new Packer();
    for (let i = 1; i <= 5; i++) packer.add(100 * i, i);
    const transfer = packer.flush();
    expect(datagramsOf(transfer)).toEqual([
      [100, 1],
      [200, 2],
      [300, 3],
      [400, 4],
      [500, 5],
    ]);
    expect([transfer?.payloadBytes, tagsOf(transfer)]).toEqual([1500, [1, 2, 3, 4, 5]]);
  });

  test('a flush without anything to send sends nothing', () => {
    const packer = new Packer();
    expect([packer.flush(), packer.tx.ntbs, packer.tx.hasPending]).toEqual([undefined, 0, false]);
  });

  test('the sequence number counts NTBs, and wraps', () => {
    const packer = new Packer({ maxNtbBytes: 600 });
    packer.host.transfersLeft = Number.POSITIVE_INFINITY;
    const sequences: number[] = [];
    for (let i = 0; i < 65_538; i++) {
      packer.add(60);
      const transfer = packer.flush();
      if (i < 3 || i > 65_534) sequences.push(readUint16Le(transfer?.buffer ?? new Uint8Array(8), 6));
    }
    expect(sequences).toEqual([0, 1, 2, 65_535, 0, 1]);
  });
});

describe('the end of the transfer', () => {
  // Two frames; the NTB without padding has 186 + first, up to the next position that leaves 2, + second.
  test.each([
    ['short enough: as it is', 60, 246],
    ['at a packet boundary: one zero byte more', 512 - 186, 513],
    ['just below one: as it is', 511 - 186, 511],
    ['at twice a boundary', 1024 - 186, 1025],
  ])('%s', (_name, frame, length) => {
    const packer = new Packer();
    packer.add(frame, 1);
    const transfer = packer.flush();
    expect(transfer?.length).toBe(length);
    expect(datagramsOf(transfer)).toEqual([[frame, 1]]);
    if (length > 186 + frame) expect(transfer?.buffer[length - 1]).toBe(0);
  });

  test('longer than min_tx_pkt: padded to the full size, with zeros', () => {
    const packer = new Packer();
    for (let i = 0; i < 10; i++) packer.add(1514, 1);
    const transfer = packer.flush();
    expect(transfer?.length).toBe(16_384);
    const end = 188 + 10 * 1514 + 9 * 2;
    expect(transfer?.buffer.subarray(end).every((byte) => byte === 0)).toBe(true);
    expect(datagramsOf(transfer)).toHaveLength(10);
    expect(packer.tx.overheadBytes).toBe(16_384 - 15_140);
  });

  test('min_tx_pkt itself is not longer', () => {
    const unpadded = new Packer({ minTxPacketBytes: 246 });
    unpadded.add(60);
    expect(unpadded.flush()?.length).toBe(246);
    const padded = new Packer({ minTxPacketBytes: 245 });
    padded.add(60);
    expect(padded.flush()?.length).toBe(16_384);
  });

  test('a size that is no multiple of the packet: the full NTB ends with a short packet', () => {
    const packer = new Packer({ maxNtbBytes: 16_385 });
    for (let i = 0; i < 10; i++) packer.add(1514);
    expect(packer.flush()?.length).toBe(16_385);
  });

  test('with zero-length packets nothing is padded to the full size', () => {
    const packer = new Packer({ sendZlp: true });
    for (let i = 0; i < 10; i++) packer.add(1514);
    const length = packer.flush()?.length ?? 0;
    expect(length).toBeLessThan(15_500);
  });
});

describe('a frame that does not fit any more', () => {
  test('waits, sends the NTB on its way, and goes first in the next one', () => {
    const packer = new Packer();
    let full: Transfer | undefined;
    let count = 0;
    while (full === undefined) full = packer.add(1514, ++count);
    expect(count).toBe(11);
    expect(tagsOf(full)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(packer.tx.reasons).toMatchObject({ 'ntb-full': 1 });
    expect([packer.tx.hasPending, packer.pool.inUse]).toEqual([true, 1]);

    packer.add(100, 12);
    const next = packer.flush();
    expect(datagramsOf(next)).toEqual([
      [1514, 11],
      [100, 12],
    ]);
    expect([packer.pool.inUse, packer.tx.hasPending]).toEqual([0, false]);
  });

  test('alone, it goes with the next flush', () => {
    const packer = new Packer();
    for (let i = 1; i <= 11; i++) packer.add(1514, i);
    expect(tagsOf(packer.flush())).toEqual([11]);
    expect(packer.tx.hasPending).toBe(false);
  });

  test('order is kept and nothing is lost, whatever the sizes', () => {
    const sizes = fc.array(fc.integer({ min: 14, max: 2048 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(
        sizes,
        fc.constantFrom(2048 + 200, 4096, 16_384),
        fc.integer({ min: 1, max: 40 }),
        (lengths, maxNtbBytes, maxDatagrams) => {
          const packer = new Packer({ maxNtbBytes, geometry: { ...usual.geometry, maxDatagrams } });
          const sent: (readonly [number, number])[] = [];
          const collect = (transfer: Transfer | undefined): void => {
            if (transfer === undefined) return;
            const datagrams = datagramsOf(transfer);
            expect(transfer.packetCount).toBe(datagrams.length);
            expect(transfer.length <= maxNtbBytes).toBe(true);
            expect(transfer.length % 512 !== 0 || transfer.length === maxNtbBytes).toBe(true);
            sent.push(...datagrams);
          };
          lengths.forEach((length, i) => collect(packer.add(length, i)));
          collect(packer.flush());
          expect(sent).toEqual(lengths.map((length, i) => [length, i & 0xff]));
          expect([packer.tx.hasPending, packer.pool.inUse, packer.host.stats.txErrors]).toEqual([
            false,
            0,
            0,
          ]);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('limits', () => {
  test('the fortieth frame sends the NTB', () => {
    const packer = new Packer();
    for (let i = 1; i < 40; i++) expect(packer.add(60, i)).toBeUndefined();
    const transfer = packer.add(60, 40);
    expect(transfer?.packetCount).toBe(40);
    expect([packer.tx.reasons['max-datagrams'], packer.tx.hasPending]).toEqual([1, false]);
  });

  test('a device that takes one frame an NTB gets each by itself', () => {
    const packer = new Packer({ geometry: { ...usual.geometry, maxDatagrams: 1 } });
    expect(tagsOf(packer.add(60, 1))).toEqual([1]);
    expect(tagsOf(packer.add(60, 2))).toEqual([2]);
  });

  test('a frame that does not fit an empty NTB is given up as an error, and the next one goes', () => {
    const packer = new Packer({ maxNtbBytes: 1500 });
    expect(packer.add(1514, 1)).toBeUndefined();
    expect([packer.host.stats.txErrors, packer.pool.inUse, packer.tx.hasPending]).toEqual([1, 0, false]);
    packer.add(60, 2);
    expect(tagsOf(packer.flush())).toEqual([2]);
  });

  test('without a transfer to be had a packet is dropped; nothing that was collected is lost', () => {
    const packer = new Packer();
    for (let i = 1; i <= 11; i++) packer.add(1514, i);
    packer.host.transfersLeft = 0;
    // The eleventh waits; it is the older one that goes.
    expect(packer.add(60, 12)).toBeUndefined();
    expect([packer.host.stats.txDropped, packer.pool.inUse]).toEqual([1, 1]);
    expect(packer.flush()).toBeUndefined();
    packer.host.transfersLeft = 1;
    expect(tagsOf(packer.flush())).toEqual([12]);
    expect(packer.pool.inUse).toBe(0);
  });

  test('forgetting what was collected gives everything back and counts it', () => {
    const packer = new Packer();
    packer.add(60);
    packer.add(60);
    packer.tx.drop();
    expect([packer.host.given, packer.host.stats.txDropped, packer.tx.hasPending]).toEqual([1, 2, false]);
    for (let i = 1; i <= 11; i++) packer.add(1514, i);
    packer.tx.drop();
    expect([packer.pool.inUse, packer.tx.hasPending]).toEqual([0, false]);
    packer.add(60, 5);
    expect(tagsOf(packer.flush())).toEqual([5]);
  });
});

describe('with the kernel’s timer', () => {
  /** Lets the timer run until it sends; returns when that is, and what is sent. */
  function runTimer(packer: Packer, untilUs = 10_000): readonly [number, readonly number[]] {
    for (let rounds = 0; packer.tx.flushAtUs <= untilUs && rounds < 100; rounds++) {
      const nowUs = packer.tx.flushAtUs;
      if (packer.tx.timerDue(nowUs)) return [nowUs, tagsOf(packer.flush(nowUs))];
    }
    return [Number.POSITIVE_INFINITY, []];
  }

  test('a lone frame waits for three intervals: 1.2 ms', () => {
    const packer = new Packer({ txTimerUs: 400 });
    packer.add(60, 1, 0);
    expect(packer.tx.flushAtUs).toBe(400);
    expect(runTimer(packer)).toEqual([1200, [1]]);
    expect([packer.tx.flushAtUs, packer.tx.reasons.timeout]).toEqual([Number.POSITIVE_INFINITY, 1]);
  });

  test('a second frame begins the three intervals anew', () => {
    const packer = new Packer({ txTimerUs: 400 });
    packer.add(60, 1, 0);
    packer.tx.timerDue(400);
    packer.tx.timerDue(800);
    packer.add(60, 2, 900);
    expect(runTimer(packer)).toEqual([2000, [1, 2]]);
  });

  test('a third one does not', () => {
    const packer = new Packer({ txTimerUs: 400 });
    packer.add(60, 1, 0);
    packer.add(60, 2, 100);
    packer.tx.timerDue(400);
    packer.tx.timerDue(800);
    packer.add(60, 3, 900);
    expect(runTimer(packer)).toEqual([1200, [1, 2, 3]]);
  });

  test('a frame that did not fit is not left behind: the timer that was running sends it', () => {
    const packer = new Packer({ txTimerUs: 400 });
    let full: Transfer | undefined;
    for (let i = 1; full === undefined; i++) full = packer.add(1514, i, 50);
    expect(packer.tx.hasPending).toBe(true);
    const [atUs, tags] = runTimer(packer);
    expect(tags).toEqual([11]);
    expect(atUs).toBeLessThanOrEqual(1250);
  });

  test('no frame waits longer than 1.2 ms for the timer while nothing follows it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 60, max: 1514 }), fc.integer({ min: 0, max: 300 })), {
          minLength: 1,
          maxLength: 60,
        }),
        (frames) => {
          const packer = new Packer({ txTimerUs: 400 });
          let nowUs = 0;
          for (const [length, gapUs] of frames) {
            const atUs = nowUs + gapUs;
            while (packer.tx.flushAtUs <= atUs) {
              nowUs = packer.tx.flushAtUs;
              if (packer.tx.timerDue(nowUs)) packer.flush(nowUs);
            }
            nowUs = atUs;
            packer.add(length, 0, nowUs);
          }
          const lastUs = nowUs;
          while (packer.tx.hasPending) {
            nowUs = packer.tx.flushAtUs;
            expect(nowUs).toBeLessThanOrEqual(lastUs + 1200);
            if (packer.tx.timerDue(nowUs)) packer.flush(nowUs);
          }
          expect(packer.pool.inUse).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });

  test('it runs out in vain when all has been sent', () => {
    const packer = new Packer({ txTimerUs: 400 });
    for (let i = 1; i <= 40; i++) packer.add(60, i, 0);
    expect(packer.tx.hasPending).toBe(false);
    expect(runTimer(packer)).toEqual([Number.POSITIVE_INFINITY, []]);
  });
});

describe('after a transfer that was broken off', () => {
  /** So many frames that the NTB is as large as it can be. */
  function fill(packer: Packer, length: number): Transfer {
    for (let tag = 0; tag < 200; tag++) {
      const transfer = packer.add(length, tag);
      if (transfer !== undefined) return transfer;
    }
    throw new Error('no NTB came of it');
  }

  test.each([1514, 512, 476, 1000])(
    'the next NTB ends with a short packet, whatever is in it (frames of %i bytes)',
    (length) => {
      const packer = new Packer();
      const before = fill(packer, length);
      packer.tx.realign();
      // The one that is being filled may be full already; the one after it is not.
      const next = [fill(packer, length), fill(packer, length)];
      const short = next.findIndex((transfer) => transfer.length % usual.maxPacketBytes !== 0);
      expect(short).toBeGreaterThanOrEqual(0);
      for (const transfer of next) expect(datagramsOf(transfer).length).toBeGreaterThan(0);
      const after = fill(packer, length);
      expect(after.length).toBe(before.length);
    },
  );
});
