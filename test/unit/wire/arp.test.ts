import { expect, test } from 'vitest';
import {
  arpOperation,
  arpReply,
  arpRequest,
  arpSenderIp,
  arpTargetIp,
  checkArp,
  copyArpSenderMac,
  copyArpTargetMac,
  writeArp,
} from '../../../src/wire/arp.ts';
import { zeroMacAddress } from '../../../src/wire/mac-address.ts';
import { bytesOf, embedded } from './bytes-of.ts';

const sender = bytesOf('02 00 00 00 00 01');
const target = bytesOf('02 00 00 00 00 02');
/** Who has 10.9.0.1? Tell 10.9.0.2. */
const request = bytesOf(
  '0001 0800 06 04 0001 | 02 00 00 00 00 01 0a 09 00 02 | 00 00 00 00 00 00 0a 09 00 01',
);

test('writes a request', () => {
  const bytes = embedded(new Uint8Array(28), 14);
  expect(writeArp(bytes, 14, arpRequest, sender, 0x0a090002, zeroMacAddress, 0x0a090001)).toBe(28);
  expect(bytes).toEqual(embedded(request, 14));
});

test('reads a reply, with the padding of a 60-byte frame behind it', () => {
  const reply = embedded(
    bytesOf('0001 0800 06 04 0002 | 02 00 00 00 00 02 0a 09 00 01 | 02 00 00 00 00 01 0a 09 00 02'),
    14,
    18,
  );
  expect(checkArp(reply, 14, 46)).toBe(28);
  expect(arpOperation(reply, 14)).toBe(arpReply);
  expect(arpSenderIp(reply, 14)).toBe(0x0a090001);
  expect(arpTargetIp(reply, 14)).toBe(0x0a090002);
  const mac = new Uint8Array(6);
  copyArpSenderMac(reply, 14, mac);
  expect(mac).toEqual(target);
  copyArpTargetMac(reply, 14, mac);
  expect(mac).toEqual(sender);
});

test.each([
  ['too short', request.subarray(0, 27)],
  ['another hardware', changed(0, 0x00, 0x06)],
  ['another protocol', changed(2, 0x86, 0xdd)],
  ['longer hardware addresses', changed(4, 8)],
  ['longer protocol addresses', changed(5, 16)],
])('refuses %s', (_name, bytes) => {
  expect(checkArp(bytes, 0, bytes.length)).toBe(-1);
});

function changed(offset: number, ...values: readonly number[]): Uint8Array {
  const bytes = request.slice();
  bytes.set(values, offset);
  return bytes;
}
