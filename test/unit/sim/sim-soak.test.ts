import { describe, expect, test } from 'vitest';
import { Random } from '../../../src/base/random.ts';
import { TraceHash } from '../../../src/sim/trace-hash.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import { pattern } from './bare-device.ts';
import { bulkIn, bulkOut, cdcCatalogue, interruptIn, personality, SimSetup } from './sim-setup.ts';

const addresses = [bulkOut, bulkIn, interruptIn] as const;

/** Does things at random to a device and its driver; checks that every transfer ends once, and only once. */
class Soak {
  readonly setup: SimSetup;
  readonly hash = new TraceHash();
  readonly #random: Random;
  readonly #out = new Set<Transfer>();
  readonly #idle: Transfer[] = [];
  submitted = 0;
  #requestOut = false;

  constructor(what: SimPersonality, seed: number) {
    this.#random = new Random(seed);
    this.setup = new SimSetup(what, { seed, observer: this.hash });
    const { driver } = this.setup;
    for (const address of addresses) {
      for (let i = 0; i < 12; i++) {
        const bytes = address === interruptIn ? 16 : 4096;
        this.#idle.push(driver.transport.makeTransfer(address, bytes, 1));
      }
    }
    driver.onDone = (transfer) => {
      if (!this.#out.delete(transfer)) throw new Error('a transfer ended that was not out');
      this.#idle.push(transfer);
      // Drivers act from inside a report, too.
      if (this.#random.chance(0.3)) this.#submit();
      if (this.#random.chance(0.05)) this.#cancel();
    };
    const request = driver.handleRequestDone.bind(driver);
    driver.handleRequestDone = (result) => {
      this.#requestOut = false;
      request(result);
    };
    this.setup.open();
  }

  get out(): number {
    return this.#out.size;
  }

  #submit(): void {
    const index = this.#random.integer(0, this.#idle.length - 1);
    const [transfer] = this.#idle.splice(index, 1);
    if (transfer === undefined) return;
    transfer.clear();
    transfer.length = this.#random.integer(0, transfer.buffer.length);
    if (transfer.endpointAddress === bulkOut && this.#random.chance(0.7)) {
      const frame = this.setup.udp(this.#random.chance(0.5) ? 7 : 9, pattern(this.#random.integer(0, 1472)));
      transfer.buffer.set(frame);
      transfer.length = frame.length;
    }
    transfer.zeroPacket = this.#random.chance(0.5);
    if (this.setup.driver.submit(transfer) === 'ok') {
      this.submitted++;
      this.#out.add(transfer);
    } else {
      this.#idle.push(transfer);
    }
  }

  #cancel(): void {
    for (const transfer of this.#out) {
      if (this.#random.chance(0.3)) this.setup.driver.cancel(transfer);
    }
  }

  #request(): void {
    if (this.#requestOut) return;
    this.#requestOut = true;
    const { driver } = this.setup;
    const timeoutMs = 50;
    const endpointAddress = addresses[this.#random.integer(0, 2)] ?? bulkOut;
    const alternateSetting = this.#random.chance(0.8) ? 1 : 0;
    const kind = this.#random.integer(0, 9);
    if (kind === 0) driver.transport.request({ kind: 'reset', timeoutMs: 500 }, driver.nowUs);
    else if (kind < 4) {
      driver.transport.request(
        { kind: 'set-interface', interfaceNumber: 1, alternateSetting, timeoutMs },
        driver.nowUs,
      );
    } else driver.transport.request({ kind: 'clear-halt', endpointAddress, timeoutMs }, driver.nowUs);
  }

  step(): void {
    const { device, driver } = this.setup;
    const endpointAddress = addresses[this.#random.integer(0, 2)] ?? bulkOut;
    const silenceUs = this.#random.integer(1, 20_000);
    const action = this.#random.integer(0, 99);
    if (action < 60) this.#submit();
    else if (action < 70) this.#cancel();
    else if (action < 76) this.#request();
    else if (action < 79) device.injectStall(endpointAddress, driver.nowUs);
    else if (action < 82) device.injectSilence(endpointAddress, silenceUs, driver.nowUs);
    else if (action < 83) device.injectSilence(0, 5 * silenceUs, driver.nowUs);
    else if (action < 85) device.dropCarrier(driver.nowUs);
    else if (action < 88) device.raiseCarrier(driver.nowUs);
    driver.run(this.#random.integer(0, this.#random.chance(0.1) ? 20_000 : 400));
  }
}

describe.each([
  ...cdcCatalogue,
  personality('modem-10mbit', { name: 'full-speed', speed: 'full', fifoBytes: 0 }),
])('$name under random submits, cancels, requests, stalls, silences, carrier losses', (what) => {
  test.each([1, 2, 3])('seed %i: every transfer ends exactly once, unplug included', (seed) => {
    const soak = new Soak(what, seed);
    for (let i = 0; i < 1500; i++) soak.step();
    const { driver, device } = soak.setup;
    const statuses = new Set(driver.reports.map(({ status }) => status));
    expect([...statuses]).toEqual(expect.arrayContaining(['completed', 'cancelled', 'stall']));
    expect(driver.reports.length + soak.out).toBe(soak.submitted);
    device.unplug(driver.nowUs);
    driver.run(10);
    expect(driver.goneAtUs).toBeDefined();
    expect(soak.out).toBe(0);
    expect(driver.reports).toHaveLength(soak.submitted);
    expect(soak.hash.transfers).toBe(soak.submitted);
  });

  test('same seed, same trace; another seed, another one', () => {
    const run = (seed: number): readonly number[] => {
      const soak = new Soak(what, seed);
      for (let i = 0; i < 400; i++) soak.step();
      return [soak.hash.value, soak.hash.transfers, soak.setup.driver.nowUs];
    };
    expect(run(7)).toEqual(run(7));
    expect(run(7)[0]).not.toBe(run(8)[0]);
  });
});

describe('determinism of chance inside of the device', () => {
  const lossy = personality('modem-10mbit');
  const what = { ...lossy, link: { ...lossy.link, upLoss: 0.1, downLoss: 0.1 } };

  function run(seed: number): readonly unknown[] {
    const hash = new TraceHash();
    const setup = new SimSetup(what, { seed, observer: hash });
    setup.open();
    setup.receive(2048, 4, () => undefined);
    setup.saturate(setup.udp(7, pattern(1000)), 10);
    setup.driver.run(1_000_000);
    const { upLostFrames, downLostFrames } = setup.inspect();
    expect(upLostFrames).toBeGreaterThan(50);
    expect(downLostFrames).toBeGreaterThan(50);
    return [hash.value, hash.transfers, upLostFrames, downLostFrames];
  }

  test('the seed decides which frames are lost', () => {
    expect(run(1)).toEqual(run(1));
    expect(run(1)[0]).not.toBe(run(2)[0]);
  });
});

describe('the trace hash', () => {
  test('tells endpoint, length, status and time apart, down to the nanosecond', () => {
    const of = (...args: Parameters<TraceHash['handleTransferEnd']>): number => {
      const hash = new TraceHash();
      hash.handleTransferEnd(...args);
      return hash.value;
    };
    const values = [
      of(0x81, 100, 'completed', 1000),
      of(0x01, 100, 'completed', 1000),
      of(0x81, 101, 'completed', 1000),
      of(0x81, 100, 'cancelled', 1000),
      of(0x81, 100, 'completed', 1000.001),
      of(0x81, 100, 'completed', 1000 + 4_294_967.296),
    ];
    expect(new Set(values).size).toBe(values.length);
  });

  test('depends on the order', () => {
    const [a, b] = [new TraceHash(), new TraceHash()];
    a.handleTransferEnd(1, 1, 'completed', 1);
    a.handleTransferEnd(2, 2, 'completed', 2);
    b.handleTransferEnd(2, 2, 'completed', 2);
    b.handleTransferEnd(1, 1, 'completed', 1);
    expect(a.value).not.toBe(b.value);
  });
});
