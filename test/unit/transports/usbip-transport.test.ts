import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import type { DeviceRequest } from '../../../src/usbnet/transport.ts';
import { mutated } from '../wire/mutation.ts';
import { UsbipPeer } from './usbip-peer.ts';

const bulkIn = 0x81;
const bulkOut = 0x02;
const interruptIn = 0x83;
const reset = -104;

function outOf(peer: UsbipPeer, bytes: readonly number[], zeroPacket = false): Transfer {
  const transfer = peer.transport.makeTransfer(bulkOut, 2048, 0);
  transfer.buffer.set(bytes);
  transfer.length = bytes.length;
  transfer.zeroPacket = zeroPacket;
  expect(peer.transport.submit(transfer, peer.clock.us)).toBe('ok');
  return transfer;
}

function inOf(peer: UsbipPeer, length: number, address = bulkIn): Transfer {
  const transfer = peer.transport.makeTransfer(address, length, 0);
  transfer.length = length;
  expect(peer.transport.submit(transfer, peer.clock.us)).toBe('ok');
  return transfer;
}

async function settled(): Promise<void> {
  await Promise.resolve();
}

const getStatus: DeviceRequest = {
  kind: 'control-in',
  requestType: 0x80,
  request: 0,
  value: 0,
  index: 0,
  length: 2,
  timeoutMs: 1000,
};

describe('what is asked', () => {
  test('bulk OUT: the bytes, and the zero packet where it is wanted', () => {
    const peer = new UsbipPeer();
    outOf(peer, [1, 2, 3], true);
    expect(peer.last).toMatchObject({
      command: 'submit',
      deviceId: 0x0001_000f,
      isIn: false,
      endpoint: 2,
      flags: 0x40,
      length: 3,
      interval: 0,
      data: Uint8Array.of(1, 2, 3),
    });
    outOf(peer, []);
    expect(peer.last).toMatchObject({ flags: 0, length: 0, data: new Uint8Array(0) });
    expect(new Set(peer.asked.map(({ seqnum }) => seqnum)).size).toBe(2);
  });

  test('bulk IN and interrupt IN: a length, no bytes; the interval in microframes', () => {
    const peer = new UsbipPeer();
    inOf(peer, 2048);
    expect(peer.last).toMatchObject({ isIn: true, endpoint: 1, length: 2048, data: new Uint8Array(0) });
    inOf(peer, 16, interruptIn);
    expect(peer.last).toMatchObject({ isIn: true, endpoint: 3, length: 16, interval: 256 });
  });

  test.each<[DeviceRequest, Record<string, unknown>]>([
    [getStatus, { isIn: true, length: 2, setup: [0x80, 0, 0, 0, 0, 0, 2, 0] }],
    [
      {
        kind: 'control-out',
        requestType: 0x21,
        request: 0x86,
        value: 0x1234,
        index: 0x0201,
        data: Uint8Array.of(9, 8),
        timeoutMs: 100,
      },
      {
        isIn: false,
        length: 2,
        setup: [0x21, 0x86, 0x34, 0x12, 0x01, 0x02, 2, 0],
        data: Uint8Array.of(9, 8),
      },
    ],
    [
      { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 3, timeoutMs: 100 },
      { isIn: false, length: 0, setup: [0x01, 11, 3, 0, 1, 0, 0, 0] },
    ],
    [
      { kind: 'clear-halt', endpointAddress: bulkIn, timeoutMs: 100 },
      { isIn: false, length: 0, setup: [0x02, 1, 0, 0, 0x81, 0, 0, 0] },
    ],
    [
      { kind: 'reset', timeoutMs: 100 },
      { isIn: false, length: 0, setup: [0x23, 3, 4, 0, 0, 0, 0, 0] },
    ],
  ])('%o', (request, expected) => {
    const peer = new UsbipPeer();
    peer.request(request);
    expect(peer.last).toMatchObject({ command: 'submit', endpoint: 0, ...expected });
  });
});

describe('answers', () => {
  test('bytes come into the transfer’s own buffer, however the stream is cut', () => {
    const data = Uint8Array.from({ length: 700 }, (_, i) => i & 0xff);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1 }), (sizes) => {
        const peer = new UsbipPeer();
        const first = inOf(peer, 2048);
        const second = inOf(peer, 1024);
        const stream = Uint8Array.from([
          ...peer.submitReply(peer.asked[1]?.seqnum ?? 0, 0, 700, data),
          ...peer.submitReply(peer.asked[0]?.seqnum ?? 0, 0, 2, Uint8Array.of(5, 6)),
        ]);
        let position = 0;
        for (let turn = 0; position < stream.length; turn++) {
          const end = position + (sizes[turn % sizes.length] ?? 1);
          peer.transport.handleBytes(stream.subarray(position, end));
          position = end;
        }
        expect(peer.handler.ends.map(({ transfer, status }) => [transfer, status])).toEqual([
          [second, 'completed'],
          [first, 'completed'],
        ]);
        expect(second.buffer.subarray(0, second.actualLength)).toEqual(data);
        expect(first.buffer.subarray(0, first.actualLength)).toEqual(Uint8Array.of(5, 6));
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    [0, 'completed'],
    [-2, 'cancelled'],
    [-5, 'failed'],
    [-32, 'stall'],
    [-62, 'protocol-error'],
    [-71, 'protocol-error'],
    [-75, 'overflow'],
    [-84, 'protocol-error'],
    [-104, 'cancelled'],
    [-110, 'timed-out'],
    [-121, 'failed'],
  ] as const)('status %i is %s, of a transfer and of a request', (errno, status) => {
    const peer = new UsbipPeer();
    inOf(peer, 64);
    peer.say(peer.submitReply(peer.last.seqnum, errno, 0));
    peer.request(getStatus);
    peer.say(peer.submitReply(peer.last.seqnum, errno, 0));
    expect(peer.handler.ends.map((end) => end.status)).toEqual([status]);
    expect(peer.handler.results.map(({ result }) => result.status)).toEqual([status]);
    expect(peer.transport.loss).toBeUndefined();
  });

  test('a transfer may be submitted anew from inside its report', () => {
    const peer = new UsbipPeer();
    peer.handler.onEnd = (transfer, nowUs) => {
      if (peer.handler.ends.length < 3) peer.transport.submit(transfer, nowUs);
    };
    inOf(peer, 64);
    for (let i = 0; i < 3; i++) peer.say(peer.submitReply(peer.last.seqnum, 0, 1, Uint8Array.of(i)));
    expect(peer.handler.ends).toHaveLength(3);
    expect(new Set(peer.asked.map(({ seqnum }) => seqnum)).size).toBe(3);
  });

  test('of a request with data', () => {
    const peer = new UsbipPeer();
    peer.request(getStatus);
    peer.say(peer.submitReply(peer.last.seqnum, 0, 2, Uint8Array.of(1, 0)));
    expect(peer.handler.results[0]?.result).toEqual({ status: 'completed', data: Uint8Array.of(1, 0) });
  });

  test.each<[string, (peer: UsbipPeer) => Uint8Array]>([
    ['to nothing that is out', (peer) => peer.submitReply(999, 0, 0)],
    ['longer than its transfer', (peer) => peer.submitReply(peer.last.seqnum, 0, 65, new Uint8Array(65))],
    ['with a positive status', (peer) => peer.submitReply(peer.last.seqnum, 5, 0)],
    ['that is none', () => new TextEncoder().encode('HTTP/1.1 200 OK'.padEnd(48))],
  ])('an answer %s: the connection is given up, once', async (_name, answer) => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    peer.say(answer(peer));
    peer.say(answer(peer));
    expect(peer.handler.ends).toHaveLength(0);
    await settled();
    expect(peer.losses).toEqual(['nonsense']);
    expect(peer.handler.goneAtUs).toHaveLength(1);
    expect(peer.handler.ends).toMatchObject([{ transfer, status: 'gone', actualLength: 0 }]);
  });
});

describe('cancelling', () => {
  test('asks for the end once, and reports it when it comes', () => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    const { seqnum } = peer.last;
    peer.transport.cancel(transfer, 0);
    peer.transport.cancel(transfer, 0);
    expect(peer.asked).toHaveLength(2);
    expect(peer.last).toMatchObject({ command: 'unlink', unlinkSeqnum: seqnum });
    expect(peer.handler.ends).toHaveLength(0);
    peer.say(peer.unlinkReply(peer.last.seqnum, reset));
    expect(peer.handler.ends).toMatchObject([{ transfer, status: 'cancelled', actualLength: 0 }]);
    peer.transport.cancel(transfer, 0);
    expect(peer.asked).toHaveLength(2);
  });

  test('the answer was faster: it counts, and the unlink’s reply is of no interest', () => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    const { seqnum } = peer.last;
    peer.transport.cancel(transfer, 0);
    const unlink = peer.last.seqnum;
    peer.say(peer.submitReply(seqnum, 0, 1, Uint8Array.of(7)));
    expect(peer.handler.ends).toMatchObject([{ status: 'completed', actualLength: 1 }]);
    // It is out again when the reply comes.
    peer.transport.submit(transfer, 0);
    peer.say(peer.unlinkReply(unlink, 0));
    expect(peer.handler.ends).toHaveLength(1);
    peer.say(peer.submitReply(peer.last.seqnum, 0, 1, Uint8Array.of(8)));
    expect(peer.handler.ends).toHaveLength(2);
  });

  test('the reply comes alone and says 0, as Linux has it: the transfer has ended without data', () => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    peer.transport.cancel(transfer, 0);
    peer.say(peer.unlinkReply(peer.last.seqnum, 0));
    expect(peer.handler.ends).toMatchObject([{ transfer, status: 'cancelled', actualLength: 0 }]);
  });

  test('the reply comes before the answer: the late data are skipped, and harm nothing', () => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    const { seqnum } = peer.last;
    peer.transport.cancel(transfer, 0);
    peer.say(peer.unlinkReply(peer.last.seqnum, 0));
    transfer.buffer.fill(1);
    const other = inOf(peer, 64);
    peer.say(
      peer.submitReply(seqnum, 0, 40, new Uint8Array(40).fill(0xee)),
      peer.submitReply(peer.last.seqnum, 0, 1, Uint8Array.of(3)),
    );
    expect(peer.handler.ends.map((end) => [end.transfer, end.status])).toEqual([
      [transfer, 'cancelled'],
      [other, 'completed'],
    ]);
    expect(transfer.buffer.every((byte) => byte === 1)).toBe(true);
  });
});

describe('deadlines', () => {
  test('a request whose time is up is reported and taken back; its late answer is skipped', () => {
    const peer = new UsbipPeer();
    peer.request(getStatus);
    const { seqnum } = peer.last;
    peer.pass(900_000);
    expect(peer.handler.results).toHaveLength(0);
    peer.pass(250_000);
    expect(peer.handler.results.map(({ result }) => result.status)).toEqual(['timed-out']);
    expect(peer.last).toMatchObject({ command: 'unlink', unlinkSeqnum: seqnum });
    peer.request(getStatus);
    const next = peer.last.seqnum;
    peer.say(peer.submitReply(seqnum, 0, 2, Uint8Array.of(1, 1)));
    expect(peer.handler.results).toHaveLength(1);
    peer.say(peer.submitReply(next, 0, 2, Uint8Array.of(0, 0)));
    expect(peer.handler.results[1]?.result).toEqual({ status: 'completed', data: Uint8Array.of(0, 0) });
    expect(peer.transport.loss).toBeUndefined();
  });

  test('given up in the middle of its answer: the rest of that is skipped', () => {
    const peer = new UsbipPeer();
    peer.request({ ...getStatus, length: 64 });
    const answer = peer.submitReply(peer.last.seqnum, 0, 64, new Uint8Array(64));
    peer.say(answer.subarray(0, 60));
    peer.pass(1_250_000);
    peer.say(answer.subarray(60));
    expect(peer.handler.results.map(({ result }) => result.status)).toEqual(['timed-out']);
    peer.request(getStatus);
    peer.say(peer.submitReply(peer.last.seqnum, 0, 2, Uint8Array.of(0, 0)));
    expect(peer.handler.results).toHaveLength(2);
  });

  test('a quiet server is asked whether it is there; an answer is enough', () => {
    const peer = new UsbipPeer();
    peer.pass(1_750_000);
    expect(peer.asked).toHaveLength(0);
    peer.pass(500_000);
    // For the end of what there never was: no device sees that.
    expect(peer.asked).toMatchObject([{ command: 'unlink', unlinkSeqnum: 0 }]);
    peer.say(peer.unlinkReply(peer.last.seqnum, 0));
    peer.pass(1_750_000);
    expect(peer.asked).toHaveLength(1);
    peer.pass(500_000);
    expect(peer.asked).toHaveLength(2);
    expect(peer.transport.loss).toBeUndefined();
  });

  test('a silent server is gone within eight seconds', async () => {
    const peer = new UsbipPeer();
    const transfer = inOf(peer, 64);
    peer.request({ ...getStatus, timeoutMs: 0 });
    peer.pass(6_500_000);
    await settled();
    expect(peer.losses).toEqual([]);
    peer.pass(1_500_000);
    await settled();
    expect(peer.losses).toEqual(['silent']);
    expect(peer.handler.goneAtUs).toHaveLength(1);
    expect(peer.handler.ends).toMatchObject([{ transfer, status: 'gone' }]);
    expect(peer.handler.results.map(({ result }) => result.status)).toEqual(['gone']);
    expect(peer.transport.submit(transfer, 0)).toBe('gone');
  });
});

describe('the end', () => {
  test('unplugged at the server: the first transfer that says so ends it for all', async () => {
    const peer = new UsbipPeer();
    const first = inOf(peer, 64);
    const second = inOf(peer, 64);
    peer.say(peer.submitReply(peer.asked[0]?.seqnum ?? 0, -108, 0));
    expect(peer.handler.ends).toMatchObject([{ transfer: first, status: 'gone' }]);
    await settled();
    expect(peer.losses).toEqual(['unplugged']);
    expect(peer.handler.goneAtUs).toHaveLength(1);
    expect(peer.handler.ends[1]).toMatchObject({ transfer: second, status: 'gone' });
  });

  test('a new altsetting ends what is queued: that is no unplug', () => {
    const peer = new UsbipPeer();
    inOf(peer, 64);
    const { seqnum } = peer.last;
    peer.request({ kind: 'set-interface', interfaceNumber: 1, alternateSetting: 0, timeoutMs: 100 });
    peer.say(peer.submitReply(seqnum, -108, 0), peer.submitReply(peer.last.seqnum, 0, 0));
    expect(peer.handler.ends).toMatchObject([{ status: 'cancelled' }]);
    expect(peer.handler.results).toMatchObject([{ result: { status: 'completed' } }]);
    expect(peer.transport.loss).toBeUndefined();
  });

  test('nothing is reported from inside a call', async () => {
    const peer = new UsbipPeer();
    inOf(peer, 64);
    peer.transport.lose('broken');
    peer.request(getStatus);
    expect([...peer.handler.ends, ...peer.handler.results, ...peer.handler.goneAtUs]).toHaveLength(0);
    await settled();
    expect(peer.handler.ends).toHaveLength(1);
    expect(peer.handler.results).toMatchObject([{ result: { status: 'gone' } }]);
    expect(peer.losses).toEqual(['broken']);
  });

  test('closing: everything is unlinked, nothing more is taken, what does not come back is counted', async () => {
    const peer = new UsbipPeer();
    const transfers = [inOf(peer, 64), inOf(peer, 64)];
    const seqnums = peer.asked.map(({ seqnum }) => seqnum);
    peer.transport.startClosing();
    const unlinks = peer.asked.slice(2);
    expect(unlinks.map(({ unlinkSeqnum }) => unlinkSeqnum)).toEqual(seqnums);
    expect(peer.transport.submit(transfers[0] as Transfer, 0)).toBe('gone');
    const idle = peer.transport.waitUntilIdle(1000);
    peer.say(peer.unlinkReply(unlinks[0]?.seqnum ?? 0, reset));
    peer.say(peer.unlinkReply(unlinks[1]?.seqnum ?? 0, reset));
    expect(await idle).toBe(true);
    expect(peer.transport.dispose()).toBe(0);

    const other = new UsbipPeer();
    const lost = inOf(other, 64);
    other.transport.startClosing();
    expect(await other.transport.waitUntilIdle(5)).toBe(false);
    expect(other.transport.dispose()).toBe(1);
    expect(other.handler.ends).toMatchObject([{ transfer: lost, status: 'gone' }]);
  });

  test('what the handler throws is told, and the transport goes on', () => {
    const peer = new UsbipPeer();
    peer.handler.onEnd = () => {
      throw new Error('a fault of the driver');
    };
    inOf(peer, 64);
    peer.say(peer.submitReply(peer.last.seqnum, 0, 0));
    expect(peer.handlerErrors).toHaveLength(1);
    peer.request(getStatus);
    peer.say(peer.submitReply(peer.last.seqnum, 0, 0));
    expect(peer.handler.results).toHaveLength(1);
  });
});

test('20,000 servers that talk nonsense: no throw, every transfer ends once', async () => {
  const random = new Random(11);
  let nonsense = 0;
  for (let run = 0; run < 20_000; run++) {
    const peer = new UsbipPeer();
    const transfers = [inOf(peer, 64), inOf(peer, 64), outOf(peer, [1, 2, 3])];
    peer.request(getStatus);
    if (random.chance(0.5)) peer.transport.cancel(transfers[1] as Transfer, 0);
    const talk = Uint8Array.from([
      ...peer.submitReply(2, 0, 8, new Uint8Array(8)),
      ...peer.submitReply(3, 0, 3),
      ...peer.submitReply(4, 0, 2, new Uint8Array(2)),
      ...peer.unlinkReply(5, reset),
    ]);
    peer.say(random.chance(0.1) ? talk : mutated(random, talk));
    peer.transport.lose('broken');
    await settled();
    if (peer.losses[0] === 'nonsense') nonsense++;
    const ended = peer.handler.ends.map((end) => end.transfer);
    if (ended.length !== 3 || new Set(ended).size !== 3 || peer.handler.results.length !== 1) {
      throw new Error(`run ${run}: ${ended.length} ends, ${peer.handler.results.length} results`);
    }
    for (const { actualLength } of peer.handler.ends) expect(actualLength).toBeLessThanOrEqual(64);
  }
  expect(nonsense).toBeGreaterThan(5000);
});
