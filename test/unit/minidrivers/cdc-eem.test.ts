import { crc32 as zlibCrc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { cdcEem } from '../../../src/minidrivers/cdc-eem.ts';
import { PacketPool } from '../../../src/usbnet/packet.ts';
import type { UsbDevice } from '../../../src/usbnet/transport.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { contextFor, converse, frameOf, receivedTransfer, startDriver } from './conversation.ts';

function device(setting = 0, withEndpoints = true): UsbDevice {
  const endpoints = withEndpoints ? [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)] : [];
  return {
    speed: 'high',
    descriptor: deviceDescriptor,
    configuration: configuration([altSetting(0, setting, [2, 0x0c, 7], endpoints)]),
  };
}

function bind(what = device()): ReturnType<typeof cdcEem.bind> {
  return cdcEem.bind(contextFor(what, 'cdc_eem', 0, { dataInterface: 0 }));
}

describe('bind (spec 3.10)', () => {
  test('nothing is said at all', () => {
    const { steps, value } = converse(bind(), () => 'completed');
    expect(steps).toEqual([]);
    expect(value).toMatchObject({
      name: 'cdc_eem',
      controlInterface: 0,
      dataInterface: 0,
      bulkIn: 0x81,
      bulkOut: 0x02,
      statusEndpoint: undefined,
      macAddress: undefined,
      hardMtuBytes: 1520,
      rxUrbSizeBytes: undefined,
      mtuBytes: 1500,
      flags: { sendZlp: false, multiPacket: false, linkInterrupt: false },
    });
  });

  test('an altsetting that is not the first is selected; without endpoints it is not driven', () => {
    expect(converse(bind(device(1)), () => 'completed').steps).toEqual(['interface 0 alt 1']);
    expect(converse(bind(device(0, false)), () => 'completed').error).toMatchObject({ stage: 'bind' });
  });
});

function started(): ReturnType<typeof startDriver> {
  return startDriver(bind(), () => 'completed');
}

const pool = new PacketPool(100);
function frame(length: number): ReturnType<typeof frameOf> {
  return frameOf(pool.take() ?? expect.fail(), length);
}

describe('sending', () => {
  test('a frame with its CRC', () => {
    const transfer = started().hooks.txFixup(frame(60), 3);
    expect(transfer).toMatchObject({ length: 66, payloadBytes: 60, packetCount: 1 });
    expect(transfer?.buffer.slice(0, 2)).toEqual(bytesOf('40 40'));
    const crc = zlibCrc32(new Uint8Array(60).fill(0xa5));
    expect(new DataView(transfer?.buffer.buffer ?? new ArrayBuffer(0)).getUint32(62, true)).toBe(crc);
  });

  test('never on a packet boundary: an empty packet is put behind', () => {
    const { hooks, host } = started();
    host.transfersLeft = 2000;
    for (let length = 14; length <= 1514; length++) {
      const transfer = hooks.txFixup(frame(length), 0);
      const bare = length + 6;
      expect(transfer?.length).toBe(bare % 512 === 0 ? bare + 2 : bare);
      if (bare % 512 === 0) expect(transfer?.buffer.slice(bare, bare + 2)).toEqual(bytesOf('00 00'));
    }
  });
});

describe('receiving', () => {
  const good = bytesOf(`12 00 ${'11'.repeat(14)} deadbeef`);

  test('frames of a bundle; a fault is counted by its reason', () => {
    const { hooks, host } = started();
    expect(hooks.rxFixup(receivedTransfer(good, bytesOf('00 00'), good), 1)).toBe(true);
    expect(host.received).toHaveLength(2);
    expect(hooks.rxFixup(receivedTransfer(bytesOf(`12 40 ${'11'.repeat(18)}`), good), 1)).toBe(true);
    expect(hooks.rxFixup(receivedTransfer(bytesOf('02 00 01 02'), good), 1)).toBe(true);
    expect(hooks.rxFixup(receivedTransfer(good, bytesOf('00 01 05')), 1)).toBe(false);
    expect(hooks.rxFixup(receivedTransfer(bytesOf('00 d0 00 a8')), 1)).toBe(true);
    expect(host.received).toHaveLength(5);
    expect([...host.stats.rxFaults]).toEqual([
      ['bad-crc', 1],
      ['runt', 1],
      ['overrun', 1],
      ['reserved-command', 1],
      ['unexpected-command', 1],
    ]);
    // The transfer that could not be read to its end is usbnet's to count.
    expect(host.stats).toMatchObject({ rxErrors: 2, rxCrcErrors: 1, rxLengthErrors: 2 });
  });

  test('an echo is answered alone when nothing else is to be sent, and in front of a frame otherwise', () => {
    const { hooks } = started();
    expect(hooks.hasPendingTx?.()).toBe(false);
    hooks.rxFixup(receivedTransfer(bytesOf('03 80 0a0b0c')), 1);
    expect(hooks.hasPendingTx?.()).toBe(true);
    const alone = hooks.txFixup(null, 1);
    expect(alone?.buffer.slice(0, alone.length)).toEqual(bytesOf('03 88 0a0b0c'));
    expect(alone?.packetCount).toBe(0);
    expect(hooks.hasPendingTx?.()).toBe(false);
    expect(hooks.txFixup(null, 1)).toBeUndefined();

    hooks.rxFixup(receivedTransfer(bytesOf('01 80 0d'), bytesOf('01 80 0e')), 1);
    const both = hooks.txFixup(frame(20), 1);
    // Of two that come at once the second is dropped.
    expect(both?.buffer.slice(0, 5)).toEqual(bytesOf('01 88 0d 18 40'));
    expect(both?.length).toBe(3 + 26);
    hooks.rxFixup(receivedTransfer(bytesOf('00 80')), 1);
    hooks.dropPendingTx?.();
    expect(hooks.hasPendingTx?.()).toBe(false);
  });

  test('an answer of 510 bytes is kept off the packet boundary too', () => {
    const { hooks } = started();
    hooks.rxFixup(receivedTransfer(bytesOf(`fe 81 ${'77'.repeat(510)}`)), 1);
    const transfer = hooks.txFixup(null, 1);
    expect(transfer?.length).toBe(514);
  });
});
