/** The drivers of ASIX' chips on virtual ones. */
import { describe, expect, test } from 'vitest';
import { bytesEqual } from '../../../src/base/bytes.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import { DrivenDevice, fast } from './driven-device.ts';

const noBytes = new Uint8Array(0);

interface Case {
  readonly name: string;
  readonly device: SimPersonality;
  readonly driver: string;
  readonly chip?: string;
  readonly speedMbit: number;
  readonly rxUrbSizeBytes: number;
}

const cases: readonly Case[] = [
  {
    name: 'AX88179',
    device: fast('adapter-2500mbit'),
    driver: 'ax88179_178a',
    speedMbit: 1000,
    rxUrbSizeBytes: 20_480,
  },
  {
    name: 'AX88179 at high speed',
    device: fast('adapter-2500mbit', { speed: 'high' }),
    driver: 'ax88179_178a',
    speedMbit: 1000,
    rxUrbSizeBytes: 24_576,
  },
  {
    name: 'AX88179 at full speed',
    device: fast('adapter-2500mbit', { speed: 'full' }),
    driver: 'ax88179_178a',
    speedMbit: 1000,
    rxUrbSizeBytes: 26_624,
  },
  {
    name: 'AX88178',
    device: fast('adapter-usb2-1gbe'),
    driver: 'asix',
    chip: 'AX88178',
    speedMbit: 1000,
    rxUrbSizeBytes: 2048,
  },
  {
    name: 'AX88178 at full speed',
    device: fast('adapter-usb2-1gbe', { speed: 'full' }),
    driver: 'asix',
    chip: 'AX88178',
    speedMbit: 1000,
    rxUrbSizeBytes: 2048,
  },
  {
    name: 'AX88772',
    device: fast('adapter-usb2-100mbit', { firmware: 'ax88772', productId: 0x7720 }),
    driver: 'asix',
    chip: 'AX88772, PHY inside',
    speedMbit: 100,
    rxUrbSizeBytes: 2048,
  },
  {
    name: 'AX88772A',
    device: fast('adapter-usb2-100mbit'),
    driver: 'asix',
    chip: 'AX88772A, PHY inside',
    speedMbit: 100,
    rxUrbSizeBytes: 2048,
  },
  {
    name: 'AX88772B, with its address in the EEPROM',
    device: fast('adapter-usb2-100mbit', { firmware: 'ax88772b', productId: 0x772b }),
    driver: 'asix',
    chip: 'AX88772B, PHY inside',
    speedMbit: 100,
    rxUrbSizeBytes: 2048,
  },
  {
    name: 'AX88172',
    device: fast('adapter-usb2-10mbit'),
    driver: 'asix',
    chip: 'AX88172',
    speedMbit: 100,
    rxUrbSizeBytes: 1514,
  },
];

function expectCleanExchange(driven: DrivenDevice): void {
  const sent = driven.exchange();
  expect(driven.echoes.length).toBe(sent.length);
  const different = sent.findIndex((payload, i) => !bytesEqual(payload, driven.echoes[i] ?? noBytes));
  expect(different).toBe(-1);
  const { stats } = driven.netif.usbnet;
  expect(stats).toMatchObject({ rxErrors: 0, rxDropped: 0, txErrors: 0, txDropped: 0 });
  expect([...stats.rxFaults]).toEqual([]);
  expect(driven.device.inspect(driven.clock.nowUs()).device).toMatchObject({
    malformedFromHost: 0,
    dropped: 0,
    filtered: 0,
  });
}

/** Opens, and waits for the link. */
function open(driven: DrivenDevice): void {
  expect(driven.open()).toEqual({ ok: true, value: undefined });
  driven.runWhile(() => !driven.netif.carrier, 5_000_000);
  expect(driven.netif.carrier).toBe(true);
  // A chip whose reset takes its link away says so a little later.
  driven.run(1_000_000);
  expect(driven.netif.carrier).toBe(true);
}

function close(driven: DrivenDevice): void {
  expect(driven.stop()).toEqual({ ok: true, value: undefined });
  expect(driven.netif.txQueue.dql.inflight).toBe(0);
  expect(driven.netif.packets.inUse).toBe(0);
}

describe.each(cases)('$name', ({ device, driver, chip, speedMbit, rxUrbSizeBytes }) => {
  test('frames of every length come back as they went, without an error; closed, and opened again', () => {
    const driven = new DrivenDevice(device);
    expect(driven.binding.name).toBe(driver);
    if (chip !== undefined) expect(driven.binding.facts).toEqual({ Chip: chip });
    open(driven);
    expect(driven.netif.usbnet.rxLinkBitsPerSecond).toBe(speedMbit * 1e6);
    expect(driven.netif.usbnet.rxUrbSizeBytes).toBe(rxUrbSizeBytes);
    expectCleanExchange(driven);
    close(driven);
    open(driven);
    expectCleanExchange(driven);
    close(driven);
  });

  test('the address is the chip’s', () => {
    const { productId } = device;
    expect(new DrivenDevice(device).binding.macAddress).toEqual(
      Uint8Array.of(2, 0x51, 0x53, 0, productId >> 8, productId & 0xff),
    );
  });

  test('the carrier follows the cable', () => {
    const driven = new DrivenDevice(device);
    open(driven);
    driven.carriers.length = 0;
    driven.device.dropCarrier(driven.clock.nowUs());
    driven.run(500_000);
    expect(driven.carriers).toEqual([false]);
    driven.device.raiseCarrier(driven.clock.nowUs());
    driven.run(1_000_000);
    expect(driven.carriers).toEqual([false, true]);
    expectCleanExchange(driven);
    close(driven);
  });

  test('a frame for somebody else stays outside, but if it is asked for', () => {
    const driven = new DrivenDevice(device);
    open(driven);
    const other = Uint8Array.of(2, 0, 0, 0, 0, 0x77);
    const group = Uint8Array.of(0x33, 0x33, 0xff, 0, 0, 1);
    const seen = (): readonly number[] => {
      const { filtered, framesToHost } = driven.device.inspect(driven.clock.nowUs()).device;
      return [filtered, framesToHost];
    };
    const send = (destination: Uint8Array): void => {
      const frame = driven.device.farSide.pool.take();
      frame.bytes.fill(0, 0, 60);
      frame.bytes.set(destination);
      frame.length = 60;
      driven.device.farSide.sendDown(frame, driven.clock.nowUs());
      driven.run(10_000);
    };
    const [filtered = 0, passed = 0] = seen();
    send(other);
    send(group);
    expect(seen()).toEqual([filtered + 2, passed]);
    driven.netif.usbnet.setRxMode({ promiscuous: false, multicast: true }, driven.clock.nowUs());
    driven.run(100_000);
    send(group);
    send(other);
    expect(seen()).toEqual([filtered + 3, passed + 1]);
    driven.netif.usbnet.setRxMode({ promiscuous: true, multicast: false }, driven.clock.nowUs());
    driven.run(100_000);
    send(other);
    expect(seen()).toEqual([filtered + 3, passed + 2]);
  });

  test('pulled out under load: everything comes to an end', () => {
    const driven = new DrivenDevice(device);
    open(driven);
    for (let i = 0; i < 200; i++) driven.send(new Uint8Array(1000));
    driven.run(500);
    driven.device.unplug(driven.clock.nowUs());
    driven.run(10_000);
    driven.stop();
    expect(driven.netif.txQueue.dql.inflight).toBe(0);
    expect(driven.netif.packets.inUse).toBe(0);
    expect(driven.netif.usbnet.rxTransfersInflight + driven.netif.usbnet.txTransfersInflight).toBe(0);
  });
});
