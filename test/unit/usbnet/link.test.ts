import { describe, expect, test } from 'vitest';
import type { DriverHost } from '../../../src/usbnet/minidriver.ts';
import { controlOut, DriverError, type Procedure } from '../../../src/usbnet/procedure.ts';
import { UsbnetBench } from './bench.ts';
import { bulkIn } from './hand-made-device.ts';

const ms = 1000;

describe('the interrupt endpoint', () => {
  test('what it says goes to the driver, and it is read again', () => {
    const bench = new UsbnetBench().open();
    bench.notify(1, 2, 3);
    bench.notify(4);
    expect(bench.binding.driver.statuses).toEqual([Uint8Array.of(1, 2, 3), Uint8Array.of(4)]);
    expect(bench.interrupt).toHaveLength(1);
  });

  test('it is read from opening to stopping, by one transfer', () => {
    const bench = new UsbnetBench();
    expect(bench.interrupt).toHaveLength(0);
    bench.open();
    const [first] = bench.interrupt;
    const outcome = bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(3 * ms);
    expect([outcome()?.ok, bench.interrupt.length]).toEqual([true, 0]);
    bench.open();
    expect(bench.interrupt).toEqual([first]);
  });

  test('a device without one does without', () => {
    const bench = new UsbnetBench({ statusEndpoint: false }).open();
    expect(bench.interrupt).toHaveLength(0);
    expect(bench.rx).toHaveLength(60);
  });

  test.each(['failed', 'protocol-error', 'overflow', 'timed-out', 'stall'] as const)(
    '%s: it is read again',
    (status) => {
      const bench = new UsbnetBench().open();
      bench.end(bench.interrupt[0], status);
      expect(bench.interrupt).toHaveLength(1);
      bench.notify(9);
      expect(bench.binding.driver.statuses).toHaveLength(1);
    },
  );

  test('one that only errs is left alone for a second, or until the interface is opened or resumed', () => {
    const bench = new UsbnetBench().open();
    const fail = (): void => {
      for (let i = 0; i < 20 && bench.interrupt.length > 0; i++) bench.end(bench.interrupt[0], 'failed');
      expect(bench.interrupt).toHaveLength(0);
    };
    fail();
    bench.advance(999 * ms);
    expect(bench.interrupt).toHaveLength(0);
    bench.advance(1 * ms);
    expect(bench.interrupt).toHaveLength(1);
    fail();
    bench.usbnet.suspend(false, bench.nowUs);
    bench.usbnet.resume(bench.nowUs);
    expect(bench.interrupt).toHaveLength(1);
  });

  test('a halt that stays is cleared after a second', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 20 && bench.interrupt.length > 0; i++) bench.end(bench.interrupt[0], 'stall');
    bench.advance(1000 * ms);
    expect(bench.interrupt).toHaveLength(0);
    expect(bench.transport.pendingRequest).toMatchObject({ kind: 'clear-halt', endpointAddress: 0x83 });
    bench.answer('completed');
    bench.poll();
    expect(bench.interrupt).toHaveLength(1);
  });

  test.each(['no-memory', 'failed'] as const)(
    'not taken by the bus (%s): tried again after a second',
    (result) => {
      const bench = new UsbnetBench().open();
      bench.transport.submitResult = () => result;
      bench.notify(1);
      expect(bench.interrupt).toHaveLength(0);
      bench.transport.submitResult = () => 'ok';
      bench.advance(1000 * ms);
      expect(bench.interrupt).toHaveLength(1);
      expect(bench.binding.driver.statuses).toHaveLength(1);
    },
  );

  test('nor is it read after the interface was stopped', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 20 && bench.interrupt.length > 0; i++) bench.end(bench.interrupt[0], 'failed');
    bench.stop();
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(5000 * ms);
    expect(bench.interrupt).toHaveLength(0);
  });

  test('errors that are not in a row are forgiven', () => {
    const bench = new UsbnetBench().open();
    for (let i = 0; i < 50; i++) {
      bench.end(bench.interrupt[0], i % 2 === 0 ? 'failed' : 'completed', 8);
    }
    expect(bench.interrupt).toHaveLength(1);
  });
});

describe('the carrier', () => {
  test('is there from the start, where the device does not report it', () => {
    const bench = new UsbnetBench().open();
    expect([bench.usbnet.carrier, bench.carriers]).toEqual([true, []]);
  });

  test('comes up with the notification, where it does, and with it the receiving', () => {
    const bench = new UsbnetBench({ linkInterrupt: true }).open();
    expect([bench.usbnet.carrier, bench.rx.length]).toEqual([false, 0]);
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.poll();
    expect([bench.usbnet.carrier, bench.carriers, bench.rx.length]).toEqual([true, [true], 60]);
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.poll();
    expect(bench.carriers).toEqual([true]);
  });

  test('goes at once; the receiving is called back, what is being sent is not', () => {
    const bench = new UsbnetBench().open();
    bench.send();
    bench.binding.driver.host.linkChange(false, false, bench.nowUs);
    expect(bench.carriers).toEqual([false]);
    bench.poll();
    expect(bench.transport.cancelled).toHaveLength(60);
    expect(bench.transport.cancelled.every((transfer) => transfer.endpointAddress === bulkIn)).toBe(true);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(1_000_000);
    expect([bench.rx.length, bench.tx.length]).toEqual([0, 1]);
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.poll();
    expect([bench.rx.length, bench.carriers]).toEqual([60, [false, true]]);
  });

  test('a frame that comes in while its transfer is called back is taken, but not asked for again', () => {
    const bench = new UsbnetBench().open();
    bench.binding.driver.host.linkChange(false, false, bench.nowUs);
    bench.poll();
    bench.transport.receive(bulkIn, new Uint8Array(60), bench.nowUs);
    bench.transport.endCancelled(bench.nowUs);
    bench.advance(1 * ms);
    expect([bench.received.length, bench.rx.length]).toEqual([1, 0]);
  });

  test('a queue that the driver stopped stays so without a carrier, and goes on with it', () => {
    const bench = new UsbnetBench({ settings: { bql: false } }).open();
    bench.sendUntilStopped();
    bench.binding.driver.host.linkChange(false, false, bench.nowUs);
    bench.endAll(bench.tx);
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.poll();
    expect([bench.txQueue.driverXoff, bench.runs]).toEqual([false, 1]);
  });

  test('up and down before the deferred work runs: down it is', () => {
    const bench = new UsbnetBench({
      linkInterrupt: true,
      hooks: {
        *setRxMode(): Procedure<void> {
          yield* controlOut('vendor-device', 1, 0, 0);
        },
      },
    }).open();
    bench.usbnet.setRxMode({ promiscuous: true, multicast: false }, bench.nowUs);
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.binding.driver.host.linkChange(false, false, bench.nowUs);
    bench.answer('completed');
    expect(bench.carriers).toEqual([]);
  });

  test('a link that needs a reset: the driver’s reset runs, and the carrier waits for the driver', () => {
    let resets = 0;
    const bench = new UsbnetBench({
      linkInterrupt: true,
      hooks: {
        *linkReset(): Procedure<boolean> {
          resets++;
          throw new DriverError('reset the link', 'no', yield* controlOut('vendor-device', 1, 0, 0));
        },
      },
    }).open();
    bench.binding.driver.host.linkChange(true, true, bench.nowUs);
    bench.answer('stall');
    expect([resets, bench.usbnet.carrier]).toEqual([1, false]);
    // A reset that failed does not keep the rest from being done.
    bench.binding.driver.host.linkChange(true, false, bench.nowUs);
    bench.poll();
    expect(bench.usbnet.carrier).toBe(true);
  });

  test('a reset that finds a link raises the carrier, with receive transfers of the size that it set', () => {
    let host: DriverHost | undefined;
    const bench = new UsbnetBench({
      linkInterrupt: true,
      hooks: {
        *linkReset(): Procedure<boolean> {
          yield* controlOut('vendor-device', 1, 0, 0);
          host?.setRxUrbSize(4096);
          return true;
        },
      },
    }).open();
    host = bench.binding.driver.host;
    expect(host.carrier).toBe(false);
    host.linkChange(true, true, bench.nowUs);
    expect(bench.usbnet.carrier).toBe(false);
    bench.answer('completed');
    bench.poll();
    expect([bench.usbnet.carrier, host.carrier]).toEqual([true, true]);
    expect(bench.usbnet.rxUrbSizeBytes).toBe(4096);
    expect(bench.usbnet.rxQlen).toBe(22);
    expect(bench.rx.every((transfer) => transfer.length === 4096)).toBe(true);
  });

  test('the speed that the device tells', () => {
    const bench = new UsbnetBench();
    expect([bench.usbnet.rxLinkBitsPerSecond, bench.usbnet.txLinkBitsPerSecond]).toEqual([
      undefined,
      undefined,
    ]);
    bench.binding.driver.host.setLinkSpeed(150e6, 50e6);
    expect([bench.usbnet.rxLinkBitsPerSecond, bench.usbnet.txLinkBitsPerSecond]).toEqual([150e6, 50e6]);
  });
});

describe('deferred work', () => {
  test('is done in the kernel’s order, whatever the order in which it came up', () => {
    const done: string[] = [];
    function* ask(name: string): Procedure<boolean> {
      done.push(name);
      yield* controlOut('vendor-device', 1, 0, 0);
      return false;
    }
    const bench = new UsbnetBench({
      hooks: {
        linkReset: () => ask('link-reset'),
        *setRxMode(): Procedure<void> {
          yield* ask('set-rx-mode');
        },
      },
    }).open();
    // The first one starts at once; the others come up while it waits.
    bench.usbnet.setRxMode({ promiscuous: false, multicast: true }, bench.nowUs);
    bench.usbnet.setRxMode({ promiscuous: true, multicast: true }, bench.nowUs);
    bench.binding.driver.host.linkChange(true, true, bench.nowUs);
    bench.send();
    bench.end(bench.tx[0], 'stall');
    for (let i = 0; i < 5 && bench.transport.pendingRequest !== undefined; i++) {
      if (bench.transport.pendingRequest.kind === 'clear-halt') done.push('tx-halt');
      bench.answer('completed');
      bench.advance(3 * ms);
    }
    expect(done).toEqual(['set-rx-mode', 'tx-halt', 'link-reset', 'set-rx-mode']);
  });

  test('a piece of it that fails does not stop what comes later', () => {
    const bench = new UsbnetBench({
      hooks: {
        *setRxMode(mode): Procedure<void> {
          const status = yield* controlOut('vendor-device', 1, mode.promiscuous ? 1 : 0, 0);
          if (status !== 'completed') throw new DriverError('set the filter', 'no', status);
        },
      },
    }).open();
    bench.usbnet.setRxMode({ promiscuous: false, multicast: false }, bench.nowUs);
    bench.answer('stall');
    bench.usbnet.setRxMode({ promiscuous: true, multicast: false }, bench.nowUs);
    expect(bench.transport.pendingRequest).toMatchObject({ value: 1 });
  });
});

describe('MTU (spec 2.10)', () => {
  test('larger: the queue lengths follow, and larger buffers take the place of the small ones', () => {
    const bench = new UsbnetBench().open();
    expect(bench.usbnet.changeMtu(2000, bench.nowUs)).toBe(true);
    expect([bench.usbnet.mtuBytes, bench.usbnet.hardMtuBytes, bench.usbnet.rxUrbSizeBytes]).toEqual([
      2000, 2014, 2014,
    ]);
    expect([bench.usbnet.txQlen, bench.usbnet.rxQlen]).toEqual([45, 45]);
    expect(bench.transport.cancelled).toHaveLength(60);
    bench.transport.endCancelled(bench.nowUs);
    bench.poll();
    expect(bench.rx.map(({ length }) => length)).toEqual(Array.from({ length: 45 }, () => 2048));
    expect(bench.usbnet.transfersMade).toBe(45);
  });

  test('smaller: what is out stays out', () => {
    const bench = new UsbnetBench().open();
    expect(bench.usbnet.changeMtu(1400, bench.nowUs)).toBe(true);
    bench.poll();
    expect([bench.transport.cancelled.length, bench.usbnet.rxUrbSizeBytes, bench.rx.length]).toEqual([
      0, 1414, 64,
    ]);
    // Those of the old size are let go when they are done.
    for (const transfer of bench.rx.slice(0, 60)) bench.end(transfer, 'completed', 60);
    bench.poll();
    expect(bench.usbnet.transfersMade).toBeLessThanOrEqual(2 * 64);
  });

  test('frames that would end on a packet boundary are refused', () => {
    const bench = new UsbnetBench({ speed: 'super' }).open();
    expect(bench.usbnet.changeMtu(1024 - 14, bench.nowUs)).toBe(false);
    expect(bench.usbnet.changeMtu(2048 - 14, bench.nowUs)).toBe(false);
    expect(bench.usbnet.mtuBytes).toBe(1500);
    expect(bench.usbnet.changeMtu(1024 - 13, bench.nowUs)).toBe(true);
  });

  test.each([67, 2035])('%i is out of bounds', (mtuBytes) => {
    const bench = new UsbnetBench();
    expect(bench.usbnet.changeMtu(mtuBytes, 0)).toBe(false);
  });

  test('a size of receive transfers that the driver has set stays', () => {
    const bench = new UsbnetBench({ rxUrbSizeBytes: 4096 }).open();
    bench.usbnet.changeMtu(2000, bench.nowUs);
    expect([bench.usbnet.rxUrbSizeBytes, bench.usbnet.hardMtuBytes]).toEqual([4096, 2014]);
    expect(bench.transport.cancelled).toHaveLength(0);
  });

  test('a hard_mtu of the device’s own gives way to the MTU and a header', () => {
    const bench = new UsbnetBench({ hardMtuBytes: 9014, hardHeaderBytes: 14 }).open();
    expect([bench.usbnet.txQlen, bench.usbnet.hardMtuBytes]).toEqual([10, 9014]);
    // 498 and 14 is a whole packet of 512.
    expect(bench.usbnet.changeMtu(498, bench.nowUs)).toBe(false);
    expect(bench.usbnet.changeMtu(1400, bench.nowUs)).toBe(true);
    expect([bench.usbnet.txQlen, bench.usbnet.hardMtuBytes]).toEqual([64, 1414]);
  });

  test('a driver that does it itself: only the MTU changes, and only if it agrees', () => {
    const bench = new UsbnetBench({ hooks: { changeMtu: (mtuBytes) => mtuBytes <= 1600 } }).open();
    expect([bench.usbnet.changeMtu(1700, 0), bench.usbnet.changeMtu(1600, 0)]).toEqual([false, true]);
    expect([bench.usbnet.mtuBytes, bench.usbnet.hardMtuBytes]).toEqual([1600, 1514]);
  });

  test('with more out than the new length allows, the queue stops instead of dropping', () => {
    const bench = new UsbnetBench({ settings: { bql: false } }).open();
    for (let i = 0; i < 50; i++) bench.send();
    bench.usbnet.changeMtu(2000, bench.nowUs);
    expect(bench.txQueue.driverXoff).toBe(true);
    bench.poll();
    expect(bench.txQueue.driverXoff).toBe(true);
    for (const transfer of bench.tx.slice(0, 6)) bench.end(transfer);
    bench.transport.endCancelled(bench.nowUs);
    bench.poll();
    expect([bench.txQueue.driverXoff, bench.sendUntilStopped(), bench.usbnet.stats.txDropped]).toEqual([
      false,
      1,
      0,
    ]);
  });
});
