import { describe, expect, test } from 'vitest';
import { huaweiNcm } from '../../../src/minidrivers/huawei-ncm.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import type { UsbDevice } from '../../../src/usbnet/transport.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import {
  type Answer,
  contextFor,
  converse,
  frameOf,
  functional,
  ntbParameters,
  obliging,
  startDriver,
} from './conversation.ts';

const triple = [0xff, 0x02, 0x16] as const;
const descriptors = `${functional.header} 05 24 06 00 00 ${functional.ethernet} ${functional.ncm}`;

/** One interface that is all of the function, as in the sticks of 12d1:1506 and 12d1:15b6. */
function single(): UsbDevice {
  const status = endpoint(0x85, 'interrupt', 16);
  return {
    speed: 'high',
    descriptor: { ...deviceDescriptor, vendorId: 0x12d1, productId: 0x1506 },
    configuration: configuration([
      altSetting(0, 0, triple, [status], bytesOf(descriptors)),
      altSetting(0, 1, triple, [status, endpoint(0x84, 'bulk', 512), endpoint(0x03, 'bulk', 512)]),
    ]),
  };
}

function bind(): ReturnType<typeof huaweiNcm.bind> {
  return huaweiNcm.bind(
    contextFor(single(), 'huawei_cdc_ncm', 0, { networkFunction: 'wwan', dataInterface: 0 }),
  );
}

/** Says these lines, each piece in a fetch of its own; refuses everything that is not AT if told so. */
function modem(
  answers: Readonly<Record<string, readonly string[]>>,
  special: Readonly<Record<string, Answer>> = {},
): { readonly heard: string[]; readonly answer: Parameters<typeof converse>[1] } {
  const heard: string[] = [];
  const waiting: string[] = [];
  const others = obliging(special);
  return {
    heard,
    answer: (request, words) => {
      if (request.kind === 'control-out' && request.request === 0) {
        const known = Object.entries(special).find(([beginning]) => words.startsWith(beginning));
        if (known !== undefined) return known[1];
        const text = new TextDecoder().decode(request.data);
        heard.push(text);
        waiting.push(...(answers[text.trim()] ?? ['\r\nERROR\r\n']));
        return 'completed';
      }
      if (request.kind === 'control-in' && request.request === 1) {
        return new TextEncoder().encode(waiting.shift() ?? '');
      }
      return others(request, words);
    },
  };
}

test('binds to one interface, prefers NTB32, and leaves the carrier to itself (spec 3.7)', () => {
  const { steps, value } = converse(bind(), obliging());
  expect(steps.slice(0, 6)).toEqual([
    'interface 0 alt 1',
    'interface 0 alt 0',
    'a1 80 0000 0000 <28',
    '21 84 0001 0000',
    'sleep 15000',
    'interface 0 alt 1',
  ]);
  expect(value).toMatchObject({
    name: 'huawei_cdc_ncm',
    networkFunction: 'wwan',
    controlInterface: 0,
    dataInterface: 0,
    bulkIn: 0x84,
    bulkOut: 0x03,
    statusEndpoint: 0x85,
    flags: { multiPacket: true, linkInterrupt: false },
    facts: { 'NTB format': 'NTB32' },
  });
});

test.each([
  ['NTB32', 3, 16],
  ['NTB16', 1, 12],
] as const)('%s: the NDP stands behind the datagrams', (_name, formats, headerLength) => {
  const answer = obliging({ 'a1 80': { hex: ntbParameters({ formats }) } });
  const { hooks } = startDriver(bind(), answer);
  const pool = new PacketPool(4);
  hooks.txFixup(frameOf(pool.take() ?? expect.fail(), 60), 0);
  hooks.txFixup(frameOf(pool.take() ?? expect.fail(), 61), 0);
  const transfer = hooks.txFixup(null, 0);
  const view = new DataView(transfer?.buffer.buffer ?? new ArrayBuffer(0));
  const ndp = headerLength === 16 ? view.getUint32(12, true) : view.getUint16(10, true);
  expect(ndp).toBeGreaterThan(headerLength + 121);
  expect(ndp % 4).toBe(0);
  expect(transfer?.length).toBeGreaterThan(ndp);
});

describe('the call', () => {
  const query = 'AT^NDISSTATQRY?';
  const dial = 'AT^NDISDUP=1,1';
  const hangUp = 'AT^NDISDUP=1,0';
  const ok = '\r\nOK\r\n';

  function calling(peer: ReturnType<typeof modem>): ReturnType<typeof startDriver>['hooks'] {
    const { hooks } = startDriver(bind(), peer.answer);
    converse(hooks.reset?.() ?? expect.fail(), peer.answer);
    converse(hooks.stop?.() ?? expect.fail(), peer.answer);
    return hooks;
  }

  test('is made where there is none, and ended with the session; answers come in pieces and with an echo', () => {
    const peer = modem({
      [query]: [`${query}\r\r\n^NDISSTAT`, 'QRY: 0,,,"IPV4"\r\n', '\r\n', ok],
      [dial]: ['\r\nO', 'K\r\n'],
      [hangUp]: [ok],
    });
    calling(peer);
    expect(peer.heard).toEqual([`${query}\r`, `${dial}\r`, `${hangUp}\r`]);
  });

  test('is left alone where there is one', () => {
    const peer = modem({ [query]: ['\r\n^NDISSTATQRY: 1,,,"IPV4"\r\n', ok] });
    calling(peer);
    expect(peer.heard).toEqual([`${query}\r`]);
  });

  test.each<[string, ReturnType<typeof modem>]>([
    ['that understands nothing', modem({})],
    ['without such a channel', modem({}, { '21 00': 'stall' })],
    ['that says nothing', modem({ [query]: [] })],
    ['that says nonsense', modem({ [query]: ['\u0000\u0001\r\n\r\n\r\n'] })],
  ])('a stick %s is driven all the same', (_name, peer) => {
    expect(() => calling(peer)).not.toThrow();
    expect(peer.heard).not.toContain(`${hangUp}\r`);
  });

  test('what it says unasked is fetched when it is announced, and nothing else is listened to', () => {
    const peer = modem({});
    const { hooks, host } = startDriver(bind(), peer.answer);
    hooks.status?.(bytesOf('a1 00 0000 0000 0000'), 8, 0);
    expect([host.workAsked, host.links]).toEqual([0, []]);
    hooks.status?.(bytesOf('a1 01 0000 0000 0000'), 8, 0);
    expect(host.workAsked).toBe(1);
    const { steps } = converse(hooks.work?.() ?? expect.fail(), peer.answer);
    expect(steps).toEqual(['a1 01 0000 0000 <1024']);
  });
});
