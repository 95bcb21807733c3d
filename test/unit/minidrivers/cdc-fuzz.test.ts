/**
 * A million of each kind of bytes that a CDC device says of itself, random and nearly right, seeded: NTB parameters, from
 * which an NTB is then built, and notifications. Nothing throws, and what comes of them can be used.
 */
import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { cdcEther } from '../../../src/minidrivers/cdc-ether.ts';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import { agreeOnNtbs } from '../../../src/minidrivers/ncm-agreement.ts';
import type { UsbDevice } from '../../../src/usbnet/transport.ts';
import { ncmSignatures, ntbParametersLength, parseNtbParameters } from '../../../src/wire/ntb.ts';
import { NtbWriter } from '../../../src/wire/ntb-writer.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from '../usbnet/hand-made-device.ts';
import { bytesOf } from '../wire/bytes-of.ts';
import { contextFor, functional, HostDouble, obliging, startDriver } from './conversation.ts';

const inputs = 1_000_000;

/** Of a usual device: both formats, 16 KB each way, alignment 4. */
const usualParameters = bytesOf(
  '1c 00 03 00 00 40 00 00 01 00 00 00 04 00 00 00 00 40 00 00 01 00 00 00 04 00 10 00',
);

test('NTB parameters: whatever they are, a frame of the usual size finds room in what is agreed on', () => {
  const random = new Random(5);
  const buffer = new Uint8Array(65_536 + 1);
  const frame = new Uint8Array(1514);
  const bytes = new Uint8Array(ntbParametersLength);
  let built = 0;
  for (let run = 0; run < inputs; run++) {
    if (random.chance(0.3)) random.fill(bytes);
    else bytes.set(usualParameters);
    for (let i = random.integer(0, 4); i > 0; i--) bytes[random.integer(0, 27)] = random.integer(0, 255);
    const length = random.chance(0.05) ? random.integer(0, 27) : ntbParametersLength;
    const parameters = parseNtbParameters(bytes.subarray(0, length));
    if (parameters === undefined) {
      if (length === ntbParametersLength) throw new Error(`run ${run}: not read`);
      continue;
    }
    const packetBytes = random.chance(0.5) ? 512 : 1024;
    const agreement = agreeOnNtbs(parameters, random.integer(0, 65_535), packetBytes);
    const { geometry, rxMaxBytes, txMaxBytes, minTxPacketBytes } = agreement;
    const sane =
      rxMaxBytes >= 2048 &&
      rxMaxBytes <= 65_536 &&
      txMaxBytes > frame.length &&
      txMaxBytes <= 65_537 &&
      minTxPacketBytes <= txMaxBytes &&
      geometry.maxDatagrams > 0;
    if (!sane) throw new Error(`run ${run}: ${bytes.join(',')}: ${JSON.stringify(agreement)}`);
    if (run % 20 !== 0) continue;
    const writer = new NtbWriter(geometry);
    writer.begin(buffer, Math.min(txMaxBytes, buffer.length), 0);
    const fits = writer.tryAppend(ncmSignatures[geometry.format], frame, 0, frame.length);
    // Below the least that the standard allows Linux, and so this, does not mind if a full frame finds no room.
    if (!fits && parameters.outMaxSize < 2048) continue;
    if (!fits || writer.finish() > txMaxBytes) throw new Error(`run ${run}: ${bytes.join(',')}: no room`);
    built++;
  }
  expect(built).toBeGreaterThan(inputs / 25);
}, 60_000);

const ncmDescriptors = `${functional.union} ${functional.ethernet} ${functional.ncm}`;
const ecmDescriptors = `${functional.union} ${functional.ethernet}`;

function deviceOf(subclass: number, extra: string): UsbDevice {
  const status = endpoint(0x83, 'interrupt', 16);
  const bulk = [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)];
  return {
    speed: 'high',
    descriptor: deviceDescriptor,
    configuration: configuration([
      altSetting(0, 0, [2, subclass, 0], [status], bytesOf(extra)),
      altSetting(1, 0, [0x0a, 0, 0], bulk),
    ]),
  };
}

/** Network connection on, and a change of speed. */
const notifications = [
  bytesOf('a1 00 01 00 00 00 00 00'),
  bytesOf('a1 2a 00 00 00 00 08 00 80 96 98 00 80 96 98 00'),
  bytesOf('a1 01 00 00 00 00 00 00'),
];

describe.each([
  { driver: cdcEther, device: deviceOf(6, ecmDescriptors) },
  { driver: cdcNcm, device: deviceOf(0x0d, ncmDescriptors) },
])('$driver.name', ({ driver, device }) => {
  test('a million notifications', () => {
    const random = new Random(6);
    const { binding } = startDriver(driver.bind(contextFor(device, driver.name)), obliging());
    const host = new HostDouble(binding);
    const hooks = binding.start(host);
    const bytes = new Uint8Array(64);
    let seen = 0;
    for (let run = 0; run < inputs; run++) {
      const original = notifications[run % notifications.length] ?? bytes;
      if (random.chance(0.2)) random.fill(bytes);
      else bytes.set(original);
      for (let i = random.integer(0, 3); i > 0; i--) bytes[random.integer(0, 15)] = random.integer(0, 255);
      hooks.status?.(bytes, random.integer(0, 64), run);
      seen++;
    }
    expect(seen).toBe(inputs);
    expect(hooks.status).toBeDefined();
  }, 60_000);
});
