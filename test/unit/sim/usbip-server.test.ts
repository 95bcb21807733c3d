import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { SimUsbipExports } from '../../../src/sim/usbip-exports.ts';
import { UsbipServerSession } from '../../../src/sim/usbip-server.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { mutated } from '../wire/mutation.ts';
import { cdcCatalogue, personality, SimSetup } from './sim-setup.ts';
import { type Reply, UsbipPeer } from './usbip-peer.ts';

const submitReply = 3;
const unlinkReply = 4;
const errno = { pipe: -32, protocol: -71, overflow: -75, reset: -104, shutdown: -108, remoteIo: -121 };
const text = new TextEncoder();
const listRequest = bytesOf('0111 8005 00000000');

/** An import's request, whole. */
function importRequest(busId: string): Uint8Array {
  return Uint8Array.from([...bytesOf('0111 8003 00000000'), ...text.encode(busId.padEnd(32, '\0'))]);
}

/** The data interface's bulk endpoints come with altsetting 1. */
function open(peer: UsbipPeer): void {
  expect(peer.controlOut(0x01, 11, 1, 1).status).toBe(0);
}

/** An ARP request of the client that the far host answers. */
function arpRequest(): Uint8Array {
  const setup = new SimSetup(personality('modem-10mbit'));
  const { address, clientAddress } = setup.device.farHost;
  const bytes = new Uint8Array(42);
  const view = new DataView(bytes.buffer);
  bytes.fill(0xff, 0, 6);
  bytes.set(setup.mac, 6);
  bytes.set(bytesOf('0806 0001 0800 06 04 0001'), 12);
  bytes.set(setup.mac, 22);
  view.setUint32(28, clientAddress);
  view.setUint32(38, address);
  return bytes;
}

describe('the question', () => {
  test('the list, with what the devices say of themselves', () => {
    const peer = new UsbipPeer({ devices: cdcCatalogue });
    peer.send(listRequest);
    const reply = peer.opBytes;
    expect(reply.subarray(0, 12)).toEqual(bytesOf('0111 0005 00000000 00000004'));
    expect(reply).toHaveLength(12 + 4 * (312 + 2 * 4));
    const record = reply.subarray(12);
    expect(new TextDecoder().decode(record.subarray(256, 260))).toBe('1-1\0');
    // bus 1, device 1, SuperSpeed, ids, bcdDevice, class triple, configuration 1 of 1, 2 interfaces with their triples
    expect(record.subarray(288, 320)).toEqual(
      bytesOf('00000001 00000001 00000005 1209 0001 0100 ef0201 01 01 02 | 02060000 0a000000'),
    );
    const third = reply.subarray(12 + 2 * 320);
    expect(new TextDecoder().decode(third.subarray(256, 260))).toBe('1-3\0');
    expect(third.subarray(296, 300)).toEqual(bytesOf('00000003'));
    expect(peer.session.finished).toBe(true);
  });

  test.each([
    ['a device that there is not', importRequest('9-9'), bytesOf('0111 0003 00000004')],
    ['a bus id without an end', importRequest('1'.repeat(32)), bytesOf('0111 0003 00000004')],
    ['another version', bytesOf('0110 8005 00000000'), bytesOf('0111 0005 00000005')],
    ['another request', bytesOf('0111 8002 00000000'), new Uint8Array(0)],
    ['a web browser', text.encode('GET / HTTP/1.1\r\n\r\n'), new Uint8Array(0)],
  ])('%s: an answer at most, and the end', (_name, bytes, answer) => {
    const peer = new UsbipPeer();
    peer.send(bytes);
    expect(peer.opBytes).toEqual(answer);
    expect(peer.session.finished).toBe(true);
    expect(peer.session.attached).toBeUndefined();
  });

  test('a device is one connection’s at a time', () => {
    const exports = new SimUsbipExports(cdcCatalogue, 1);
    const first = new UsbipPeer({ exports });
    first.attach('1-2');
    const second = new UsbipPeer({ exports });
    second.send(importRequest('1-2'));
    expect(second.opBytes).toEqual(bytesOf('0111 0003 00000002'));
    const other = new UsbipPeer({ exports });
    other.attach('1-1');
    first.session.close();
    first.session.close();
    new UsbipPeer({ exports }).attach('1-2');
  });

  test('may come in any parts, and transfers right behind it', () => {
    const one = new UsbipPeer();
    one.attach();
    one.submit({ endpoint: 0, isIn: true, length: 18, setup: [0x80, 6, 0, 1, 0, 0, 18, 0] });
    one.run(10_000);
    const expected = one.replies.map(({ status, data }) => ({ status, data }));

    const submit = new Uint8Array(48);
    submit.set(bytesOf('00000001 00000001 00010001 00000001'));
    submit.set(bytesOf('00000012'), 24);
    submit.set(bytesOf('8006 0001 0000 1200'), 40);
    const stream = Uint8Array.from([...importRequest('1-1'), ...submit]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (sizes) => {
        const session = new UsbipServerSession(new SimUsbipExports(cdcCatalogue, 1));
        const out: number[] = [];
        let position = 0;
        for (let turn = 0; position < stream.length; turn++) {
          const end = position + (sizes[turn % sizes.length] ?? 1);
          session.handleBytes(stream.subarray(position, end), 0);
          position = end;
        }
        for (let atUs = session.pollAtUs(); atUs < 10_000; atUs = session.pollAtUs()) session.poll(atUs);
        out.push(...(session.takeOutput() ?? []));
        expect(out).toHaveLength(320 + 48 + 18);
        expect(Uint8Array.from(out.slice(320 + 48))).toEqual(expected[0]?.data);
      }),
      { numRuns: 50 },
    );
  });
});

describe('what a kernel asks of a new device', () => {
  test.each(cdcCatalogue)('$name', (what) => {
    const peer = new UsbipPeer({ devices: [what] });
    peer.attach();
    const superSpeed = what.speed === 'super';
    // Descriptors: first eight bytes at address 0, then all of them.
    expect(peer.controlIn(0x80, 6, 0x0100, 0, 8)).toMatchObject({ status: 0, actualLength: 8 });
    const device = peer.controlIn(0x80, 6, 0x0100, 0, 64);
    expect(device).toMatchObject({ status: 0, actualLength: 18 });
    expect(device.data.subarray(2, 4)).toEqual(superSpeed ? Uint8Array.of(0, 3) : Uint8Array.of(0, 2));
    const bos = peer.controlIn(0x80, 6, 0x0f00, 0, 5);
    expect(bos.status).toBe(superSpeed ? 0 : errno.pipe);
    const head = peer.controlIn(0x80, 6, 0x0200, 0, 9);
    const total = head.data[2] ?? 0;
    expect(peer.controlIn(0x80, 6, 0x0200, 0, total).actualLength).toBe(total);
    expect(peer.controlIn(0x80, 6, 0x0300, 0, 255).data).toEqual(bytesOf('0403 0904'));
    expect(peer.controlIn(0x80, 6, 0x0302, 0x0409, 255).status).toBe(0);
    expect(peer.controlIn(0x80, 6, 0x0600, 0, 10).status).toBe(what.speed === 'high' ? 0 : errno.pipe);
    // SuperSpeed: latencies, and the states of power that links know.
    if (superSpeed) {
      expect(peer.controlOut(0x00, 48, 0, 0, new Uint8Array(6))).toMatchObject({
        status: 0,
        actualLength: 6,
      });
      expect(peer.controlOut(0x00, 49, 40, 0).status).toBe(0);
      expect(peer.controlOut(0x00, 3, 48, 0).status).toBe(0);
    }
    expect(peer.controlOut(0x00, 9, 1, 0).status).toBe(0);
    expect(peer.controlIn(0x80, 0, 0, 0, 2)).toMatchObject({ status: 0, data: Uint8Array.of(0, 0) });
    // What drivers do: altsettings, and a halt that is none.
    expect(peer.controlOut(0x01, 11, 0, 1).status).toBe(0);
    open(peer);
    expect(peer.controlOut(0x02, 1, 0, 0x81).status).toBe(0);
    expect(peer.controlOut(0x21, 0x43, 0x0c, 0).status).toBe(0);
    // A request that it does not know.
    expect(peer.controlIn(0xc0, 0x99, 0, 0, 4)).toMatchObject({ status: errno.pipe, actualLength: 0 });
  });

  test('the connected network is told through the interrupt endpoint', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const ask = (): Reply => peer.replyTo(peer.submit({ endpoint: 2, isIn: true, length: 16 }));
    // CONNECTION_SPEED_CHANGE with 50 Mbit/s down and 10 up, then NETWORK_CONNECTION with value 1.
    expect(ask()).toMatchObject({
      status: 0,
      data: bytesOf('a12a 0000 0000 0800 80f0fa02 80969800'),
    });
    expect(ask()).toMatchObject({ status: 0, data: bytesOf('a100 0100 0000 0000') });
  });

  test('the packet count comes back as it was sent', () => {
    const peer = new UsbipPeer();
    peer.attach();
    const setup = [0x80, 0, 0, 0, 0, 0, 2, 0];
    const linux = peer.submit({ endpoint: 0, isIn: true, length: 2, setup, packetCount: 0 });
    const others = peer.submit({ endpoint: 0, isIn: true, length: 2, setup, packetCount: 0xffff_ffff });
    expect(peer.replyTo(linux).packetCount).toBe(0);
    expect(peer.replyTo(others).packetCount).toBe(0xffff_ffff);
  });

  test('requests that come at once are answered one after another', () => {
    const peer = new UsbipPeer();
    peer.attach();
    const seqnums = [1, 2, 3, 4].map(() =>
      peer.submit({ endpoint: 0, isIn: true, length: 2, setup: [0x80, 0, 0, 0, 0, 0, 2, 0] }),
    );
    peer.run(100_000);
    expect(peer.replies.map(({ seqnum }) => seqnum)).toEqual(seqnums);
    expect(new Set(peer.replies.map(({ atUs }) => atUs)).size).toBe(4);
  });
});

describe('bulk transfers', () => {
  const frame = arpRequest();

  test('a frame goes out and its answer comes in', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 2048 });
    const sent = peer.submit({ endpoint: 1, isIn: false, data: frame });
    expect(peer.replyTo(sent)).toMatchObject({
      status: 0,
      actualLength: frame.length,
      data: new Uint8Array(0),
    });
    const { status, data } = peer.replyTo(asked);
    expect(status).toBe(0);
    expect(data.subarray(12, 22)).toEqual(bytesOf('0806 0001 0800 06 04 0002'));
  });

  test('300 frames are queued, and leave at the rate of the link, in order', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const data = new Uint8Array(1514).fill(0xff, 0, 6);
    const seqnums = Array.from({ length: 300 }, () =>
      peer.submit({ endpoint: 1, isIn: false, data, flags: 0x40 }),
    );
    const startUs = peer.nowUs;
    expect(peer.session.urbs?.outstanding).toBe(300);
    peer.run(1_000_000);
    expect(peer.replies.filter(({ seqnum }) => seqnum > 1).map(({ seqnum }) => seqnum)).toEqual(seqnums);
    const lastUs = (peer.replies.at(-1)?.atUs ?? 0) - startUs;
    // 454,200 bytes at 10 Mbit/s, less what the device's memory still holds when the last one was taken.
    const leastUs = ((300 * 1514 - 4096) * 8) / 10;
    expect(lastUs).toBeGreaterThan(leastUs - 2500);
    expect(lastUs).toBeLessThan((300 * 1514 * 8) / 10 + 1000);
    expect(peer.session.urbs?.outstanding).toBe(0);
  });

  test('a packet that is too long for its transfer is babble', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 20 });
    peer.submit({ endpoint: 1, isIn: false, data: frame });
    expect(peer.replyTo(asked)).toMatchObject({ status: errno.overflow, actualLength: 20 });
  });

  test('short is an error where it was said to be one', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 2048, flags: 1 });
    peer.submit({ endpoint: 1, isIn: false, data: frame });
    expect(peer.replyTo(asked)).toMatchObject({ status: errno.remoteIo, actualLength: 42 });
  });

  test('a halted endpoint stalls until the halt is cleared', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    peer.session.attached?.device.injectStall(0x81, peer.nowUs);
    expect(peer.replyTo(peer.submit({ endpoint: 1, isIn: true, length: 64 })).status).toBe(errno.pipe);
    expect(peer.controlIn(0x82, 0, 0, 0x81, 2).data).toEqual(Uint8Array.of(1, 0));
    expect(peer.controlOut(0x02, 1, 0, 0x81).status).toBe(0);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 64 });
    peer.run(50_000);
    expect(peer.repliesTo(asked)).toHaveLength(0);
  });

  test('endpoints that there are not, or not now', () => {
    const peer = new UsbipPeer();
    peer.attach();
    expect(peer.replyTo(peer.submit({ endpoint: 5, isIn: true, length: 64 })).status).toBe(errno.protocol);
    const closed = peer.submit({ endpoint: 1, isIn: false, data: frame });
    expect(peer.replyTo(closed).status).toBe(errno.protocol);
    open(peer);
    expect(peer.replyTo(peer.submit({ endpoint: 1, isIn: false, data: frame })).status).toBe(0);
  });

  test('lengths may grow from one transfer to the next', () => {
    const peer = new UsbipPeer({ devices: [personality('adapter-100mbit')] });
    peer.attach();
    open(peer);
    for (const length of [10, 3000, 40_000, 16]) {
      // No NTB at all: the device drops it, but takes all of it.
      const sent = peer.submit({ endpoint: 1, isIn: false, data: new Uint8Array(length), flags: 0x40 });
      expect(peer.replyTo(sent)).toMatchObject({ status: 0, actualLength: length });
    }
  });
});

describe('unlinking', () => {
  test('a transfer that waits: only the unlink is answered, with ECONNRESET', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 64 });
    const unlink = peer.unlink(asked);
    expect(peer.replyTo(unlink)).toMatchObject({ command: unlinkReply, status: errno.reset });
    peer.run(10_000);
    expect(peer.repliesTo(asked)).toHaveLength(0);
    expect(peer.session.urbs?.outstanding).toBe(0);
  });

  test('a transfer that has been answered: the unlink says 0', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const sent = peer.submit({ endpoint: 1, isIn: false, data: arpRequest() });
    peer.replyTo(sent);
    const unlink = peer.unlink(sent);
    expect(peer.replyTo(unlink)).toMatchObject({ command: unlinkReply, status: 0 });
    expect(peer.repliesTo(sent)).toHaveLength(1);
  });

  test('a transfer that has ended but is not reported: its answer with its data, then 0', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 2048 });
    peer.submit({ endpoint: 1, isIn: false, data: arpRequest() });
    // Stop at the moment at which it has ended on the bus and its interrupt is on its way.
    const { device } = peer.session.attached ?? {};
    for (let i = 0; i < 100_000 && device?.inspect(peer.nowUs).device.messagesToHost === 0; i++) peer.run(1);
    expect(peer.repliesTo(asked)).toHaveLength(0);
    const unlink = peer.unlink(asked);
    expect(peer.replyTo(unlink).status).toBe(0);
    expect(peer.replyTo(asked)).toMatchObject({ command: submitReply, status: 0, actualLength: 42 });
    const order = peer.replies.map(({ seqnum }) => seqnum);
    expect(order.indexOf(asked)).toBeLessThan(order.indexOf(unlink));
  });

  test('every one of 300 that are queued, twice', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const data = new Uint8Array(1514).fill(0xff, 0, 6);
    const sent = Array.from({ length: 300 }, () =>
      peer.submit({ endpoint: 1, isIn: false, data, flags: 0x40 }),
    );
    peer.run(5000);
    const first = sent.map((seqnum) => peer.unlink(seqnum));
    const second = sent.map((seqnum) => peer.unlink(seqnum));
    peer.run(100_000);
    for (const [i, seqnum] of sent.entries()) {
      const unlinked = peer.replyTo(first[i] ?? 0).status === errno.reset;
      expect(peer.repliesTo(seqnum)).toHaveLength(unlinked ? 0 : 1);
      expect(peer.replyTo(second[i] ?? 0).status).toBe(0);
    }
    expect(peer.session.urbs?.outstanding).toBe(0);
    expect(peer.session.urbs?.counters.unlinked).toBeGreaterThan(250);
  });

  test('requests: those that wait are taken back, the one that is out goes on unheard', () => {
    const peer = new UsbipPeer();
    peer.attach();
    peer.session.attached?.device.injectSilence(0, 200_000, peer.nowUs);
    const setup = [0x80, 0, 0, 0, 0, 0, 2, 0];
    const seqnums = [1, 2, 3].map(() => peer.submit({ endpoint: 0, isIn: true, length: 2, setup }));
    for (const seqnum of seqnums.slice(0, 2)) {
      expect(peer.replyTo(peer.unlink(seqnum)).status).toBe(errno.reset);
    }
    expect(peer.replyTo(seqnums[2] ?? 0)).toMatchObject({ status: 0, actualLength: 2 });
    expect(peer.replies.filter(({ command }) => command === submitReply)).toHaveLength(1);
  });
});

describe('the end', () => {
  test('unplugged: what is out ends with ESHUTDOWN, and the connection is over', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const asked = [1, 2, 3].map(() => peer.submit({ endpoint: 1, isIn: true, length: 64 }));
    peer.session.attached?.device.unplug(peer.nowUs);
    peer.run(1000);
    for (const seqnum of asked) expect(peer.replyTo(seqnum).status).toBe(errno.shutdown);
    expect(peer.session.finished).toBe(true);
    expect(peer.session.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('a port reset brings the device back as it was', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    expect(peer.controlOut(0x23, 3, 4, 0).status).toBe(0);
    expect(peer.controlIn(0x80, 8, 0, 0, 1).data).toEqual(Uint8Array.of(1));
    expect(peer.controlIn(0x81, 10, 0, 1, 1).data).toEqual(Uint8Array.of(1));
  });

  test.each([
    ['another device', (bytes: Uint8Array) => bytes.set([9], 11)],
    ['an endpoint beyond 15', (bytes: Uint8Array) => bytes.set([16], 19)],
    ['17 MB', (bytes: Uint8Array) => bytes.set([1, 16], 24)],
    ['an isochronous transfer', (bytes: Uint8Array) => bytes.set([8], 35)],
    ['a reply', (bytes: Uint8Array) => bytes.set([3], 3)],
  ])('%s makes no sense and ends the connection', (_name, spoil) => {
    const peer = new UsbipPeer();
    peer.attach();
    const submit = new Uint8Array(48);
    submit.set(bytesOf('00000001 00000001 00010001 00000001 00000001'));
    spoil(submit);
    peer.send(submit);
    expect(peer.session.finished).toBe(true);
    expect(peer.session.failure).toMatch(/no sense/);
  });

  test('more than fits into memory is refused, and the connection goes on', () => {
    const peer = new UsbipPeer();
    peer.attach();
    open(peer);
    const length = 16 * 1024 * 1024;
    const taken = [1, 2, 3, 4].map(() => peer.submit({ endpoint: 1, isIn: true, length }));
    expect(peer.replyTo(peer.submit({ endpoint: 1, isIn: true, length: 1 })).status).toBe(-12);
    for (const seqnum of taken) expect(peer.replyTo(peer.unlink(seqnum)).status).toBe(errno.reset);
    const asked = peer.submit({ endpoint: 1, isIn: true, length: 1024 });
    peer.run(1000);
    expect(peer.repliesTo(asked)).toHaveLength(0);
  });
});

test('3,000 conversations with broken bytes: no throw, the device is given back', () => {
  const random = new Random(3);
  const parts = [importRequest('1-1')];
  for (const [i, words] of [
    '00000001 0000000a 00010001 00000001 00000000 00000000 00000012 00000000 ffffffff 00000000 8006000100001200',
    '00000001 0000000b 00010001 00000000 00000000 00000000 00000000 00000000 ffffffff 00000000 010b010001000000',
    '00000001 0000000c 00010001 00000001 00000001 00000000 00000600 00000000 ffffffff 00000000 0000000000000000',
    '00000001 0000000d 00010001 00000000 00000001 00000040 00000028 00000000 ffffffff 00000000 0000000000000000',
    '00000002 0000000e 00010001 00000000 00000000 0000000c 00000000 00000000 00000000 00000000 0000000000000000',
  ].entries()) {
    parts.push(bytesOf(words));
    if (i === 3) parts.push(new Uint8Array(40));
  }
  const conversation = Uint8Array.from(parts.flatMap((part) => [...part]));
  let attached = 0;
  for (let run = 0; run < 3000; run++) {
    const exports = new SimUsbipExports([personality('modem-10mbit')], 1);
    const session = new UsbipServerSession(exports);
    // The question is left whole, so that most get to the transfers.
    const bytes = Uint8Array.from([
      ...conversation.subarray(0, 40),
      ...mutated(random, conversation.subarray(40)),
    ]);
    let nowUs = 0;
    for (let position = 0; position < bytes.length && !session.finished; nowUs += 500) {
      const end = position + random.integer(1, 200);
      session.handleBytes(bytes.subarray(position, end), nowUs);
      position = end;
      if (session.pollAtUs() <= nowUs) session.poll(nowUs);
      if (session.attached !== undefined) attached++;
    }
    session.close();
    expect(exports.take('1-1', 0)).toBeTypeOf('object');
  }
  expect(attached).toBeGreaterThan(3000);
});
