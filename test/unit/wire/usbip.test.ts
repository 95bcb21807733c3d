import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import {
  deviceRecordLength,
  encodeDeviceListReply,
  encodeImportReply,
  encodeImportRequest,
  encodeOpHeader,
  opCode,
  opCodes,
  opStatus,
  opStatuses,
  opVersion,
  readBusId,
  readDeviceRecord,
  type UsbipListedDevice,
} from '../../../src/wire/usbip.ts';
import { DeviceListReplyReader, ImportReplyReader, type OpReply } from '../../../src/wire/usbip-reader.ts';
import { bytesOf, embedded } from './bytes-of.ts';
import { mutated, randomBytes } from './mutation.ts';

const modem: UsbipListedDevice = {
  path: '/sys/devices/x/1-1',
  busId: '1-1',
  busNumber: 1,
  deviceNumber: 15,
  speed: 'super',
  vendorId: 0x1209,
  productId: 0x0001,
  deviceVersion: 0x0100,
  deviceClass: [0xef, 2, 1],
  configurationValue: 1,
  configurationCount: 1,
  interfaceCount: 2,
  interfaces: [
    [2, 6, 0],
    [10, 0, 0],
  ],
};

/** Hands a reply over in parts of the given sizes; the last answer. */
function inParts<T>(
  reader: { read(bytes: Uint8Array): OpReply<T> },
  bytes: Uint8Array,
  sizes: readonly number[],
): OpReply<T> {
  let position = 0;
  let turn = 0;
  let reply: OpReply<T> = { kind: 'more' };
  while (position < bytes.length && reply.kind === 'more') {
    const size = sizes[turn++ % sizes.length] ?? 1;
    reply = reader.read(bytes.subarray(position, position + size));
    position += size;
  }
  return reply;
}

test('the request for the list, byte for byte (spec 9)', () => {
  expect(encodeOpHeader(opCodes.requestDeviceList)).toEqual(bytesOf('01 11 80 05 00 00 00 00'));
});

test('the request for a device', () => {
  const bytes = encodeImportRequest('3-1.4');
  expect(bytes).toEqual(bytesOf(`0111 8003 00000000 332d312e34 ${'00'.repeat(27)}`));
  const moved = embedded(bytes, 5);
  expect([opVersion(moved, 5), opCode(moved, 5), opStatus(moved, 5)]).toEqual([0x0111, 0x8003, 0]);
  expect(readBusId(moved, 13)).toBe('3-1.4');
});

test('a device record has its fields where Linux has them', () => {
  const reply = encodeImportReply(modem);
  expect(reply).toHaveLength(8 + 312);
  expect(deviceRecordLength).toBe(312);
  expect(reply.subarray(0, 8)).toEqual(bytesOf('0111 0003 00000000'));
  // busnum, devnum, speed, ids, version, class triple, active configuration, configurations, interfaces
  expect(reply.subarray(8 + 288)).toEqual(
    bytesOf('00000001 0000000f 00000005 1209 0001 0100 ef0201 01 01 02'),
  );
  expect(new TextDecoder().decode(reply.subarray(8 + 256, 8 + 259))).toBe('1-1');
  const { interfaces: _interfaces, ...record } = modem;
  expect(readDeviceRecord(reply, 8)).toEqual(record);
});

test.each([
  [1, 'low'],
  [2, 'full'],
  [3, 'high'],
  [4, 'wireless'],
  [5, 'super'],
  [6, 'super-plus'],
  [0, 'unknown'],
  [7, 'unknown'],
  [0xffff_ffff, 'unknown'],
] as const)('speed %i is %s', (number, speed) => {
  const record = encodeImportReply(modem).slice(8);
  new DataView(record.buffer).setUint32(296, number);
  expect(readDeviceRecord(record, 0).speed).toBe(speed);
});

test('text without an end, or with control characters, does no harm', () => {
  const record = encodeImportReply(modem).slice(8);
  record.fill(0x41, 0, 288);
  record[257] = 0x1b;
  const { path, busId } = readDeviceRecord(record, 0);
  expect(path).toBe('A'.repeat(256));
  expect(busId).toBe(`A?${'A'.repeat(30)}`);
});

describe('reading a list', () => {
  const list = encodeDeviceListReply([modem, { ...modem, busId: '1-2', interfaces: [] }, modem]);

  test('comes out as it went in, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        expect(inParts(new DeviceListReplyReader(), list, sizes)).toEqual({
          kind: 'done',
          value: [modem, { ...modem, busId: '1-2', interfaces: [], interfaceCount: 0 }, modem],
        });
      }),
      { numRuns: 100 },
    );
  });

  test('is not complete one byte before its end', () => {
    expect(new DeviceListReplyReader().read(list.subarray(0, -1))).toEqual({ kind: 'more' });
  });

  test.each([
    ['no devices', encodeDeviceListReply([]), { kind: 'done', value: [] }],
    ['refused', encodeOpHeader(opCodes.replyDeviceList, 1), { kind: 'refused', status: 1 }],
    ['another version', bytesOf('0106 0005 00000000'), { kind: 'other-version', version: 0x0106 }],
    ['another reply', encodeOpHeader(opCodes.replyImport), { kind: 'nonsense' }],
    ['a web server', new TextEncoder().encode('HTTP/1.1 400 Bad Request'), { kind: 'nonsense' }],
    ['a million devices', bytesOf('0111 0005 00000000 000f4240'), { kind: 'nonsense' }],
  ])('%s', (_name, bytes, reply) => {
    expect(new DeviceListReplyReader().read(bytes)).toEqual(reply);
  });
});

describe('reading the reply to an import', () => {
  test('takes its own bytes and no more, however it is cut', () => {
    const { interfaces: _interfaces, ...record } = modem;
    const stream = new Uint8Array([...encodeImportReply(modem), 1, 2, 3]);
    for (let size = 1; size < stream.length; size++) {
      const reader = new ImportReplyReader();
      let position = 0;
      let reply: OpReply<unknown> = { kind: 'more' };
      while (reply.kind === 'more') {
        reply = reader.read(stream.subarray(position, position + size));
        position += reader.consumed;
      }
      expect(reply).toEqual({ kind: 'done', value: record });
      expect(position).toBe(320);
    }
  });

  test.each([
    ['busy', encodeOpHeader(opCodes.replyImport, opStatuses.busy), { kind: 'refused', status: 2 }],
    ['another version', bytesOf('0110 0003 00000000'), { kind: 'other-version', version: 0x0110 }],
    ['another reply', encodeOpHeader(opCodes.replyDeviceList), { kind: 'nonsense' }],
  ])('%s', (_name, bytes, reply) => {
    expect(new ImportReplyReader().read(bytes)).toEqual(reply);
  });
});

test('60,000 broken replies: no throw, and never more devices than came', () => {
  const random = new Random(5);
  const list = encodeDeviceListReply([modem, { ...modem, busId: '1-2' }]);
  const reply = encodeImportReply(modem);
  const kinds = new Map<string, number>();
  for (let run = 0; run < 60_000; run++) {
    const bytes = random.chance(0.1)
      ? randomBytes(random, 400)
      : mutated(random, random.chance(0.5) ? list : reply);
    const sizes = [random.integer(1, 400), random.integer(1, 40)];
    const listed = inParts(new DeviceListReplyReader(), bytes, sizes);
    if (listed.kind === 'done') expect(listed.value.length * 312).toBeLessThanOrEqual(bytes.length);
    const reader = new ImportReplyReader();
    const imported = inParts(reader, bytes, sizes);
    expect(reader.consumed).toBeLessThanOrEqual(bytes.length);
    for (const { kind } of [listed, imported]) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  for (const kind of ['more', 'done', 'refused', 'other-version', 'nonsense']) {
    expect(kinds.get(kind) ?? 0).toBeGreaterThan(100);
  }
});
