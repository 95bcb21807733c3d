import { describe, expect, test } from 'vitest';
import { rndisHost } from '../../../src/minidrivers/rndis-host.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import type { DeviceRequest, UsbDevice } from '../../../src/usbnet/transport.ts';
import {
  encodeRndisMessage,
  parseRndisMessage,
  rndisOids,
  type RndisMessage,
  rndisStatuses,
} from '../../../src/wire/rndis.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { type Answer, contextFor, converse, frameOf, receivedTransfer, startDriver } from './conversation.ts';

const mac = Uint8Array.of(2, 0, 0x5e, 0x10, 0, 1);

function device(maxPacket = 512, dataSetting = 0): UsbDevice {
  const data = [endpoint(0x81, 'bulk', maxPacket), endpoint(0x02, 'bulk', maxPacket)];
  return {
    speed: 'high',
    descriptor: deviceDescriptor,
    configuration: configuration([
      altSetting(0, 0, [0xe0, 1, 3], [endpoint(0x83, 'interrupt', 8)], bytesOf('05 24 06 00 01')),
      ...(dataSetting === 0 ? [] : [altSetting(1, 0, [0x0a, 0, 0])]),
      altSetting(1, dataSetting, [0x0a, 0, 0], data),
    ]),
  };
}

function bind(maxPacket?: number, dataSetting?: number): ReturnType<typeof rndisHost.bind> {
  return rndisHost.bind(contextFor(device(maxPacket, dataSetting), 'rndis_host'));
}

interface Behaviour {
  readonly maxTransferBytes?: number;
  readonly address?: Uint8Array;
  /** Queries that are refused. */
  readonly refused?: readonly number[];
  /** What is fetched next, where it is not the plain answer; undefined: as usual. */
  readonly fetch?: (waiting: Uint8Array[], count: number) => Answer | undefined;
  /** Commands that it does not even look at, by kind and how many of them. */
  readonly deafTo?: (message: RndisMessage, count: number) => boolean;
}

/** A device as it should be, but for what is changed. */
class Device {
  readonly heard: RndisMessage[] = [];
  readonly waiting: Uint8Array[] = [];
  readonly #behaviour: Behaviour;
  #fetches = 0;

  constructor(behaviour: Behaviour = {}) {
    this.#behaviour = behaviour;
  }

  get kinds(): string[] {
    return this.heard.map((message) => message.kind);
  }

  readonly answer = (request: DeviceRequest): Answer => {
    if (request.kind === 'control-out' && request.request === 0) {
      const message = parseRndisMessage(request.data);
      if (message === undefined) return 'stall';
      this.heard.push(message);
      const reply = this.#reply(message);
      const isDeaf = this.#behaviour.deafTo?.(
        message,
        this.kinds.filter((kind) => kind === message.kind).length,
      );
      if (reply !== undefined && isDeaf !== true) this.waiting.push(encodeRndisMessage(reply));
      return 'completed';
    }
    if (request.kind === 'control-in' && request.request === 1) {
      const special = this.#behaviour.fetch?.(this.waiting, this.#fetches++);
      return special ?? this.waiting.shift() ?? 'stall';
    }
    return 'completed';
  };

  #reply(message: RndisMessage): RndisMessage | undefined {
    const { success, notSupported } = rndisStatuses;
    switch (message.kind) {
      case 'initialize':
        return {
          kind: 'initialize-complete',
          requestId: message.requestId,
          status: success,
          maxPacketsPerMessage: 1,
          maxTransferBytes: this.#behaviour.maxTransferBytes ?? 1580,
          alignmentExponent: 0,
        };
      case 'query': {
        const known =
          message.oid === rndisOids.permanentAddress ? (this.#behaviour.address ?? mac) : bytesOf('00000000');
        const isRefused = this.#behaviour.refused?.includes(message.oid) === true;
        return {
          kind: 'query-complete',
          requestId: message.requestId,
          status: isRefused ? notSupported : success,
          information: isRefused ? new Uint8Array(0) : known,
        };
      }
      case 'set':
        return { kind: 'set-complete', requestId: message.requestId, status: success };
      case 'keep-alive':
        return { kind: 'keep-alive-complete', requestId: message.requestId, status: success };
      default:
        return undefined;
    }
  }
}

describe('bind (spec 3.4)', () => {
  test('initialise, medium, address, filter, in this order and no more', () => {
    const peer = new Device();
    const { steps, value } = converse(bind(), peer.answer);
    expect(steps.filter((step) => !step.startsWith('a1 01'))).toEqual([
      '21 00 0000 0000 : 02 00 00 00 18 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 00 08 00 00',
      expect.stringMatching(
        /^21 00 0000 0000 : 04 00 00 00 1c 00 00 00 02 00 00 00 02 02 01 00 00 00 00 00 14/,
      ),
      expect.stringMatching(
        /^21 00 0000 0000 : 04 00 00 00 4c 00 00 00 03 00 00 00 01 01 01 01 30 00 00 00 14/,
      ),
      expect.stringMatching(
        /^21 00 0000 0000 : 05 00 00 00 20 .* 0e 01 01 00 04 00 00 00 14 00 00 00 00 00 00 00 2d 00 00 00$/,
      ),
    ]);
    expect(steps.filter((step) => step === 'a1 01 0000 0000 <1025')).toHaveLength(4);
    expect(value).toMatchObject({
      name: 'rndis_host',
      controlInterface: 0,
      dataInterface: 1,
      bulkIn: 0x81,
      bulkOut: 0x02,
      statusEndpoint: 0x83,
      macAddress: mac,
      hardMtuBytes: 1558,
      rxUrbSizeBytes: 2048,
      mtuBytes: 1500,
      maxMtuBytes: 1500,
      flags: { sendZlp: false, multiPacket: false, linkInterrupt: false },
    });
  });

  test('receive transfers by packet size: whole packets, a frame and a bit more', () => {
    expect(
      [64, 512, 1024].map((size) => converse(bind(size), new Device().answer).value?.rxUrbSizeBytes),
    ).toEqual([1600, 2048, 2048]);
  });

  test('a data altsetting that is not the first is selected before the filter is set', () => {
    const { steps } = converse(bind(512, 1), new Device().answer);
    expect(steps[0]).toBe('interface 1 alt 1');
  });

  test('a device that takes less gets a smaller MTU, and one that takes too little is halted and left', () => {
    expect(converse(bind(), new Device({ maxTransferBytes: 1400 }).answer).value).toMatchObject({
      hardMtuBytes: 1400,
      mtuBytes: 1342,
    });
    expect(converse(bind(), new Device({ maxTransferBytes: 0 }).answer).value).toMatchObject({
      mtuBytes: 1500,
    });
    const small = new Device({ maxTransferBytes: 100 });
    expect(converse(bind(), small.answer).error).toMatchObject({ stage: 'bind' });
    expect(small.kinds).toEqual(['initialize', 'halt']);
  });

  test('without a medium it is driven, without an address it is not', () => {
    expect(converse(bind(), new Device({ refused: [rndisOids.physicalMedium] }).answer).value).toBeDefined();
    const silent = new Device({ refused: [rndisOids.permanentAddress] });
    expect(converse(bind(), silent.answer).error).toMatchObject({ stage: 'read the MAC address' });
    expect(silent.kinds.at(-1)).toBe('halt');
    const short = new Device({ address: mac.subarray(0, 5) });
    expect(converse(bind(), short.answer).error).toMatchObject({ stage: 'read the MAC address' });
    expect(
      converse(bind(), new Device({ address: new Uint8Array(6) }).answer).value?.macAddress,
    ).toBeUndefined();
  });
});

describe('how devices answer', () => {
  const indication = encodeRndisMessage({ kind: 'indicate', status: rndisStatuses.mediaConnect });
  const keepAlive = encodeRndisMessage({ kind: 'keep-alive', requestId: 0x77 });
  const stray = encodeRndisMessage({ kind: 'query-complete', requestId: 999, status: 0, information: mac });

  test.each<[string, Behaviour]>([
    ['late', { fetch: (_waiting, count) => (count % 4 === 3 ? undefined : 'stall') }],
    ['first with nothing', { fetch: (_waiting, count) => (count % 2 === 0 ? { hex: '' } : undefined) }],
    ['first with a zero', { fetch: (_waiting, count) => (count % 2 === 0 ? { hex: '00' } : undefined) }],
    ['first an earlier question', { fetch: (_waiting, count) => (count % 2 === 0 ? stray : undefined) }],
    ['first with an indication', { fetch: (_waiting, count) => (count % 2 === 0 ? indication : undefined) }],
    [
      'first with garbage',
      { fetch: (_waiting, count) => (count % 2 === 0 ? { hex: 'ffffffff 01020304 05' } : undefined) },
    ],
    [
      'with everything in one piece',
      { fetch: (waiting) => Uint8Array.from([...indication, ...stray, ...(waiting.shift() ?? [])]) },
    ],
    [
      'in pieces of seven bytes',
      {
        fetch: (waiting) => {
          const [first] = waiting;
          if (first === undefined) return undefined;
          if (first.length <= 7) return waiting.shift();
          waiting[0] = first.subarray(7);
          return first.subarray(0, 7);
        },
      },
    ],
    [
      'with a length that is too large',
      {
        fetch: (waiting) => {
          const first = waiting.shift()?.slice();
          if (first !== undefined) first[4] = 200;
          return first;
        },
      },
    ],
    ['not to the first of each kind', { deafTo: (_message, count) => count === 1 }],
  ])('%s', (_name, behaviour) => {
    const { value, error } = converse(bind(), new Device(behaviour).answer);
    expect(error).toBeUndefined();
    expect(value?.macAddress).toEqual(mac);
  });

  test("the device's keep-alive is answered with its id, and the answer waited for all the same", () => {
    const peer = new Device({ fetch: (_waiting, count) => (count === 0 ? keepAlive : undefined) });
    expect(converse(bind(), peer.answer).value).toBeDefined();
    expect(peer.heard[1]).toEqual({ kind: 'keep-alive-complete', requestId: 0x77, status: 0 });
  });

  test.each<[string, Behaviour, string | undefined]>([
    ['never', { deafTo: () => true }, 'timed-out'],
    ['with the wrong id only', { fetch: () => stray }, 'timed-out'],
    ['too slowly for the bus', { fetch: () => 'timed-out' }, 'timed-out'],
    ['not at all, being gone', { fetch: () => 'gone' }, 'gone'],
  ])('%s: it is not driven, and given up soon', (_name, behaviour, status) => {
    const { error, steps } = converse(bind(), new Device(behaviour).answer);
    expect(error).toMatchObject({ name: 'DriverError', stage: 'initialise RNDIS', status });
    expect(steps.length).toBeLessThan(60);
  });

  test('a refusal is one, whatever else might come', () => {
    const refusal = { kind: 'initialize-complete', requestId: 1, status: rndisStatuses.failure } as const;
    const bytes = encodeRndisMessage({
      ...refusal,
      maxPacketsPerMessage: 0,
      maxTransferBytes: 0,
      alignmentExponent: 0,
    });
    const { error, steps } = converse(bind(), new Device({ fetch: () => bytes }).answer);
    expect(error).toMatchObject({ stage: 'initialise RNDIS' });
    expect(steps).toHaveLength(2);
  });
});

describe('frames', () => {
  function started(): ReturnType<typeof startDriver> {
    return startDriver(bind(), new Device().answer);
  }

  test('one goes out behind its header; the padding byte is none of its length', () => {
    const { hooks, host } = started();
    const packet = frameOf(new PacketPool(1).take() ?? expect.fail(), 60);
    packet.tag = 5;
    const transfer = hooks.txFixup(packet, 100);
    expect(transfer).toMatchObject({ length: 104, payloadBytes: 60, packetCount: 1 });
    expect(transfer?.buffer.slice(0, 16)).toEqual(bytesOf('01000000 68000000 24000000 3C000000'));
    expect(transfer?.buffer.slice(16, 44)).toEqual(new Uint8Array(28));
    expect(transfer?.buffer.slice(44, 104)).toEqual(new Uint8Array(60).fill(0xa5));
    expect(host.taken).toBe(1);
    expect(hooks.txFixup(null, 100)).toBeUndefined();
  });

  test('several in a transfer, and faults by reason', () => {
    const { hooks, host } = started();
    const message = bytesOf(`01000000 3a000000 24000000 0e000000 ${'00'.repeat(28)} ${'11'.repeat(14)}`);
    expect(hooks.rxFixup(receivedTransfer(message, message, Uint8Array.of(0)), 5)).toBe(true);
    expect(host.received).toEqual([new Uint8Array(14).fill(0x11), new Uint8Array(14).fill(0x11)]);
    expect(hooks.rxFixup(receivedTransfer(message, message.subarray(0, 20)), 5)).toBe(false);
    expect(hooks.rxFixup(receivedTransfer(bytesOf('02'.repeat(60))), 5)).toBe(false);
    expect([...host.stats.rxFaults]).toEqual([
      ['short', 1],
      ['not-a-packet', 1],
    ]);
    expect(host.stats).toMatchObject({ rxLengthErrors: 1, rxFrameErrors: 1 });
  });
});

describe('while it is open', () => {
  test('the filter is set again at each opening; a device that has forgotten all is initialised', () => {
    const peer = new Device();
    const { hooks } = startDriver(bind(), peer.answer);
    peer.heard.length = 0;
    converse(hooks.reset?.() ?? expect.fail(), peer.answer);
    expect(peer.kinds).toEqual(['set']);
    converse(hooks.stop?.() ?? expect.fail(), peer.answer);
    converse(hooks.stop?.() ?? expect.fail(), peer.answer);
    expect(peer.kinds).toEqual(['set', 'halt']);
    converse(hooks.reset?.() ?? expect.fail(), peer.answer);
    expect(peer.kinds).toEqual(['set', 'halt', 'initialize', 'set']);
  });

  test('a new selection of the altsetting is followed by the filter, and a device that refuses that is initialised', () => {
    const peer = new Device();
    const { hooks } = startDriver(bind(512, 1), peer.answer);
    peer.heard.length = 0;
    const { steps } = converse(hooks.reselect?.() ?? expect.fail(), peer.answer);
    expect(steps[0]).toBe('interface 1 alt 1');
    expect(peer.kinds).toEqual(['set']);
    peer.heard.length = 0;
    const forgetful = new Device({ deafTo: (message) => message.kind === 'set' && peer.heard.length === 0 });
    const { error } = converse(hooks.reselect?.() ?? expect.fail(), forgetful.answer);
    expect(forgetful.kinds).toEqual(['set', 'set', 'initialize', 'set', 'set']);
    expect(error).toMatchObject({ stage: 'set the packet filter' });
  });

  test('what is announced is fetched; a link that is said to be gone is asked about', () => {
    const peer = new Device();
    const { hooks, host } = startDriver(bind(), peer.answer);
    converse(hooks.reset?.() ?? expect.fail(), peer.answer);
    peer.waiting.push(encodeRndisMessage({ kind: 'indicate', status: rndisStatuses.mediaDisconnect }));
    hooks.status?.(bytesOf('01000000 00000000'), 8, 1000);
    expect(host.workAsked).toBe(1);
    peer.heard.length = 0;
    converse(hooks.work?.() ?? expect.fail(), peer.answer);
    expect(peer.heard).toMatchObject([{ kind: 'query', oid: rndisOids.mediaConnectStatus }]);
    // It says 0: connected.
    expect(host.links).toEqual([]);
  });

  test('silence is asked about every five seconds, traffic is answer enough', () => {
    const peer = new Device();
    const { hooks, host } = startDriver(bind(), peer.answer);
    converse(hooks.reset?.() ?? expect.fail(), peer.answer);
    peer.heard.length = 0;
    let nowUs = 0;
    for (let i = 0; i < 4; i++) {
      expect(hooks.timerAtUs?.()).toBe(nowUs);
      hooks.timer?.(nowUs);
      nowUs = hooks.timerAtUs?.() ?? 0;
      if (i === 2) host.stats.rxTransfers++;
      converse(hooks.work?.() ?? expect.fail(), peer.answer);
    }
    expect(nowUs).toBe(20_000_000);
    expect(peer.kinds).toEqual(['keep-alive', 'keep-alive']);
  });
});
