import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packetFilterBits } from '../../../src/wire/cdc-class.ts';
import { arpRequest, writeArp } from '../../../src/wire/arp.ts';
import { etherTypeArp, writeEthernet } from '../../../src/wire/ethernet.ts';
import { broadcastMacAddress, zeroMacAddress } from '../../../src/wire/mac-address.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { pattern } from './bare-device.ts';
import { bulkIn, bulkOut, interruptIn, personality, SimSetup } from './sim-setup.ts';

const modem = personality('modem-10mbit');
const fast = { ...modem, link: { ...modem.link, upBitsPerSecond: 1e9, downBitsPerSecond: 1e9, delayUs: 10 } };

function notifications(setup: SimSetup): Uint8Array[] {
  return setup.driver.reports
    .filter(({ transfer, status }) => transfer.endpointAddress === interruptIn && status === 'completed')
    .map(({ bytes }) => bytes);
}

function listen(setup: SimSetup): void {
  setup.driver.onDone = (transfer, nowUs) => {
    if (transfer.endpointAddress === interruptIn && transfer.status === 'completed') {
      setup.driver.transport.submit(transfer, nowUs);
    }
  };
  setup.driver.submit(setup.driver.in(interruptIn, 16));
}

// Header with bmRequestType A1; 50,000,000 and 10,000,000 bit/s.
const speedChange = bytesOf('A1 2A 00 00 00 00 08 00 | 80 F0 FA 02 | 80 96 98 00');
const connected = bytesOf('A1 00 01 00 00 00 00 00');
const disconnected = bytesOf('A1 00 00 00 00 00 00 00');

describe('notifications', () => {
  test('nothing before the data interface is open, then speed and connection, once', () => {
    const setup = new SimSetup(modem);
    listen(setup);
    setup.driver.run(200_000);
    expect(notifications(setup)).toEqual([]);
    setup.open();
    setup.driver.run(500_000);
    expect(notifications(setup)).toEqual([speedChange, connected]);
  });

  test('they wait for the host to listen', () => {
    const setup = new SimSetup(modem);
    setup.open();
    setup.driver.run(1_000_000);
    listen(setup);
    setup.driver.run(100_000);
    expect(notifications(setup)).toEqual([speedChange, connected]);
  });

  test('follow the carrier; what was not fetched in time is not told', () => {
    const setup = new SimSetup(modem);
    listen(setup);
    setup.open();
    setup.driver.run(100_000);
    setup.device.dropCarrier(setup.driver.nowUs);
    setup.driver.run(100_000);
    setup.device.raiseCarrier(setup.driver.nowUs);
    setup.driver.run(100_000);
    setup.device.dropCarrier(setup.driver.nowUs);
    setup.driver.run(1);
    setup.device.raiseCarrier(setup.driver.nowUs);
    setup.driver.run(100_000);
    expect(notifications(setup)).toEqual([
      speedChange,
      connected,
      disconnected,
      speedChange,
      connected,
      speedChange,
      connected,
    ]);
  });

  test('an interface opened without a carrier says so', () => {
    const setup = new SimSetup(modem);
    setup.device.dropCarrier(0);
    listen(setup);
    setup.open();
    setup.driver.run(100_000);
    expect(notifications(setup)).toEqual([disconnected]);
  });
});

describe.each(['full', 'high', 'super'] as const)('frames at %s speed', (speed) => {
  const packet = { full: 64, high: 512, super: 1024 }[speed];

  test('come back from the far host as they went, byte for byte, whatever their length', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 0, maxLength: 1472 }), { minLength: 1, maxLength: 12 }),
        (payloads) => {
          const setup = new SimSetup({ ...fast, speed });
          setup.open();
          const received: Uint8Array[] = [];
          setup.receive(2048, 4, (bytes) => received.push(bytes));
          for (const payload of payloads) {
            setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, payload), true));
          }
          setup.driver.run(300_000);
          expect(received).toEqual(payloads.map((payload) => setup.echoOf(payload)));
          expect(setup.inspect()).toMatchObject({ framesInUse: 0, fifoFillBytes: 0, upQueueFrames: 0 });
        },
      ),
      { numRuns: 25 },
    );
  });

  test.each([packet - 42, 2 * packet - 42, packet - 41].filter((length) => length >= 0 && length <= 1472))(
    'a frame of 42 + %i bytes ends with an empty packet, or a byte of padding',
    (length) => {
      const setup = new SimSetup({ ...fast, speed });
      setup.open();
      const received: Uint8Array[] = [];
      setup.receive(2048, 4, (bytes) => received.push(bytes));
      const frame = setup.udp(7, pattern(length));
      setup.driver.submit(setup.driver.out(bulkOut, frame, true));
      // As usbnet does it without zero-length packets.
      setup.driver.submit(setup.driver.out(bulkOut, Uint8Array.from([...frame, 0])));
      setup.driver.run(50_000);
      const echo = setup.echoOf(pattern(length));
      expect(received).toEqual([echo, Uint8Array.from([...echo, 0])]);
    },
  );
});

test('without a carrier transfers end and frames arrive nowhere, either way', () => {
  const setup = new SimSetup(modem);
  setup.open();
  const received: Uint8Array[] = [];
  setup.receive(2048, 4, (bytes) => received.push(bytes));
  const send = (i: number): void => {
    setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, pattern(100, i))));
  };
  // This one has reached the far host, and its answer is on its way down, when the carrier goes.
  send(1);
  setup.driver.run(15_000);
  expect(setup.inspect().farHost.udpEchoedDatagrams).toBe(1);
  setup.device.dropCarrier(setup.driver.nowUs);
  send(2);
  setup.driver.run(100_000);
  expect(setup.driver.reports.filter(({ transfer }) => !transfer.isIn).map(({ status }) => status)).toEqual([
    'completed',
    'completed',
  ]);
  expect(received).toEqual([]);
  expect(setup.inspect()).toMatchObject({
    carrier: false,
    upLostFrames: 1,
    downLostFrames: 1,
    framesInUse: 0,
    fifoFillBytes: 0,
    farHost: { frames: 1 },
  });
  setup.device.raiseCarrier(setup.driver.nowUs);
  send(3);
  setup.driver.run(100_000);
  expect(received).toEqual([setup.echoOf(pattern(100, 3))]);
});

describe('what is no frame', () => {
  test('too short, too long, empty: dropped, counted, and nothing is left in the FIFO', () => {
    const setup = new SimSetup(fast);
    setup.open();
    const messages = [
      pattern(13),
      pattern(2049),
      pattern(5000),
      new Uint8Array(0),
      setup.udp(9, pattern(10)),
    ];
    for (const message of messages) setup.driver.submit(setup.driver.out(bulkOut, message));
    setup.driver.run(50_000);
    const { device, farHost, fifoFillBytes, framesInUse } = setup.inspect();
    expect(device).toMatchObject({ messagesFromHost: 4, malformedFromHost: 3, framesFromHost: 1 });
    expect(farHost).toMatchObject({ frames: 1, udpSunkBytes: 10 });
    expect([fifoFillBytes, framesInUse]).toEqual([0, 0]);
  });

  test('a frame that was cut short by a cancel runs into the next one', () => {
    const setup = new SimSetup({ ...modem, fifoBytes: 1024 });
    setup.open();
    const [a, b, c] = [1, 2, 3].map((i) => setup.driver.out(bulkOut, setup.udp(9, pattern(1472, i))));
    if (a === undefined || b === undefined || c === undefined) throw new Error('no transfers');
    setup.driver.submit(a);
    setup.driver.run(100);
    setup.driver.submit(b);
    setup.driver.run(100);
    setup.driver.cancel(b);
    setup.driver.submit(c);
    setup.driver.run(100_000);
    expect([a.status, b.status, c.status]).toEqual(['completed', 'cancelled', 'completed']);
    expect(setup.inspect()).toMatchObject({ fifoFillBytes: 0, framesInUse: 0 });
  });

  test('closing the interface forgets what had come of a frame', () => {
    const setup = new SimSetup(fast);
    setup.open();
    setup.driver.submit(setup.driver.out(bulkOut, pattern(1024)));
    setup.driver.run(1000);
    expect(setup.inspect().fifoFillBytes).toBe(1024);
    setup.driver.setInterface(1, 0);
    expect(setup.inspect()).toMatchObject({ fifoFillBytes: 0, framesInUse: 0 });
    setup.open();
    setup.driver.submit(setup.driver.out(bulkOut, setup.udp(9, pattern(10))));
    setup.driver.run(1000);
    expect(setup.inspect().farHost.udpSunkBytes).toBe(10);
  });
});

describe('packet filter', () => {
  /** Whether an answer to us, and one that goes to everyone, come through. */
  function passes(filter: number): { directed: boolean; broadcast: boolean } {
    const setup = new SimSetup(fast);
    setup.open();
    expect(setup.driver.controlOut(0x21, 0x43, filter, 0).status).toBe('completed');
    const received: Uint8Array[] = [];
    setup.receive(2048, 4, (bytes) => received.push(bytes));
    setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, pattern(1))));
    // The far host answers to the address that asks: ask in the name of everyone.
    const question = new Uint8Array(42);
    writeEthernet(question, 0, broadcastMacAddress, setup.mac, etherTypeArp);
    writeArp(question, 14, arpRequest, broadcastMacAddress, 0, zeroMacAddress, setup.device.farHost.address);
    setup.driver.submit(setup.driver.out(bulkOut, question));
    setup.driver.run(10_000);
    const { filtered } = setup.inspect().device;
    expect(received.length + filtered).toBe(2);
    return {
      directed: received.some((bytes) => bytes[0] === 2),
      broadcast: received.some((bytes) => bytes[0] === 0xff),
    };
  }

  test.each([
    [0, false, false],
    [packetFilterBits.directed, true, false],
    [packetFilterBits.broadcast, false, true],
    [packetFilterBits.directed | packetFilterBits.broadcast, true, true],
    [packetFilterBits.allMulticast | packetFilterBits.multicast, false, false],
    [packetFilterBits.promiscuous, true, true],
  ])('0x%x: directed %s, broadcast %s', (filter, directed, broadcast) => {
    expect(passes(filter)).toEqual({ directed, broadcast });
  });

  test('is refused for another interface', () => {
    expect(new SimSetup(modem).driver.controlOut(0x21, 0x43, 0x0c, 1).status).toBe('stall');
  });
});

describe('towards the host', () => {
  test('frames wait in a bounded queue; what is more is dropped and counted', () => {
    const setup = new SimSetup({ ...fast, hostQueueBytes: 5000 });
    setup.open();
    for (let i = 0; i < 10; i++) setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, pattern(1000))));
    setup.driver.run(50_000);
    // 1,042 bytes each.
    expect(setup.inspect()).toMatchObject({ hostQueueFrames: 4, device: { dropped: 6 } });
    const received: Uint8Array[] = [];
    setup.receive(2048, 1, (bytes) => received.push(bytes));
    setup.driver.run(1000);
    expect(received).toHaveLength(4);
    expect(setup.inspect().framesInUse).toBe(0);
  });

  test('while the interface is closed nothing waits', () => {
    const setup = new SimSetup(fast);
    setup.open();
    for (let i = 0; i < 3; i++) setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, pattern(1000))));
    setup.driver.run(20);
    setup.driver.setInterface(1, 0);
    setup.driver.run(10_000);
    const { device, hostQueueFrames, framesInUse } = setup.inspect();
    expect(device.closedDrops).toBe(3);
    expect([hostQueueFrames, framesInUse]).toEqual([0, 0]);
  });

  test('a buffer that is too small is an overflow', () => {
    const setup = new SimSetup(fast);
    setup.open();
    const transfer = setup.driver.in(bulkIn, 500);
    setup.driver.submit(transfer);
    setup.driver.submit(setup.driver.out(bulkOut, setup.udp(7, pattern(1000))));
    setup.driver.run(10_000);
    expect([transfer.status, transfer.actualLength]).toEqual(['overflow', 500]);
  });
});
