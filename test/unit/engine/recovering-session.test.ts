/** What a session does about a device that stops, and about a host that sleeps, in simulated time that runs fast. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Emitter } from '../../../src/base/emitter.ts';
import { AppError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { VirtualClock } from '../../../src/base/virtual-clock.ts';
import type { Polled } from '../../../src/base/clock.ts';
import type { Device } from '../../../src/contract/device.ts';
import { defaultSessionSettings } from '../../../src/contract/settings.ts';
import { sampleColumns, sampleIndex } from '../../../src/contract/telemetry.ts';
import { DeviceSession } from '../../../src/engine/device-session.ts';
import { drive } from '../../../src/engine/drive.ts';
import type { OpenedDevice } from '../../../src/engine/opened-device.ts';
import type { SessionLoop } from '../../../src/engine/session-loop.ts';
import { matchOf } from '../../../src/engine/sim-source.ts';
import { createSimDevice } from '../../../src/sim/create-sim-device.ts';
import { FaultTransport } from '../../../src/transports/fault-transport.ts';
import { findDataEndpoints } from '../../../src/usbnet/endpoints.ts';
import type { DeviceRequest } from '../../../src/usbnet/transport.ts';
import { personality } from '../sim/sim-setup.ts';

const tickUs = 50_000;

class FastLoop implements SessionLoop {
  readonly #clock: VirtualClock;
  readonly #parts: Polled[] = [];
  running = true;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }
  nowUs(): number {
    return this.#clock.nowUs();
  }
  add(part: Polled): void {
    this.#parts.push(part);
    this.#clock.add(part);
  }
  run(action: (nowUs: number) => void): void {
    if (this.running) action(this.#clock.nowUs());
  }
  close(): void {
    this.running = false;
    for (const part of this.#parts) this.#clock.remove(part);
  }
}

const device: Device = {
  id: 'usb:1-1',
  mode: 'drive',
  name: 'a device',
  speed: 'high',
  state: 'available',
  problems: [],
};

/** A port with a device whose OUT endpoint is stuck, once it is made to, until a reset or until it is taken anew. */
class Port {
  readonly clock = new VirtualClock(0);
  readonly plugged = new Emitter<void>();
  opened = 0;
  closed = 0;
  resets = 0;
  isThere = true;
  /** What a stuck device gets well by. */
  cure: 'rebind' | 'reset' | 'never' = 'rebind';
  isStuck = false;
  faults: FaultTransport | undefined;
  readonly session: DeviceSession;
  readonly #pump: NodeJS.Timeout;

  constructor(unplugLimitMs: number | undefined = undefined) {
    this.session = new DeviceSession({
      id: 's1',
      device,
      settings: {
        ...defaultSessionSettings,
        load: { ...defaultSessionSettings.load, rateBitsPerSecond: 500_000 },
        ping: { ...defaultSessionSettings.ping, timeoutMs: 1000 },
        sampleRateHz: 10,
      },
      startedAt: '2025-01-01T00:00:00Z',
      open: () => this.#open(),
      reopen: { open: () => this.#open(), onChange: this.plugged.event, unplugLimitMs },
      record: undefined,
      recordingRequired: false,
      seed: 1,
      log: silentLog,
    });
    this.#pump = setInterval(() => this.clock.runUntil(this.clock.nowUs() + tickUs), 1);
  }

  async #open(): Promise<OpenedDevice> {
    if (!this.isThere) throw new AppError('no-such-device', 'the device is not there');
    this.opened++;
    if (this.opened > 1 && this.cure === 'rebind') this.isStuck = false;
    const loop = new FastLoop(this.clock);
    const sim = createSimDevice(personality('tether-usb2'), { seed: this.opened, nowUs: this.clock.nowUs() });
    const faults = new FaultTransport(sim.transport, [], 1);
    this.faults = faults;
    const request = faults.request.bind(faults);
    faults.request = (what: DeviceRequest, nowUs: number): void => {
      if (what.kind === 'reset') {
        this.resets++;
        if (this.cure === 'reset') this.isStuck = false;
      }
      request(what, nowUs);
    };
    if (this.isStuck) this.stick();
    for (const part of [...sim.polled, faults]) loop.add(part);
    return {
      ...drive({
        transport: faults,
        match: matchOf(sim.transport.device),
        loop,
        log: silentLog,
        wake: () => {},
        giveBack: async () => {
          this.closed++;
          return [];
        },
      }),
      text: 'opened',
    };
  }

  stick(): void {
    const { faults } = this;
    if (faults === undefined) throw new Error('it was not opened');
    const { configuration } = faults.device;
    const data = configuration.interfaces
      .map(({ number }) => findDataEndpoints(configuration, number))
      .find((found) => found !== undefined);
    this.isStuck = true;
    faults.arm({ endpoint: data?.bulkOut.address ?? 0, fault: { kind: 'stick', until: 'never' } });
  }

  async until(condition: () => boolean, limitMs = 20_000): Promise<void> {
    const endMs = performance.now() + limitMs;
    while (!condition()) {
      if (performance.now() > endMs) throw new Error(JSON.stringify(this.session.snapshot, undefined, 1));
      await new Promise((resolve) => {
        setTimeout(resolve, 2);
      });
    }
  }

  async start(): Promise<this> {
    await this.session.start();
    await this.until(() => this.isMeasuring);
    return this;
  }

  get isMeasuring(): boolean {
    return this.session.snapshot.stages.find(({ name }) => name === 'target')?.status === 'done';
  }
  get problems(): readonly string[] {
    return this.session.snapshot.problems.map(({ id }) => id);
  }
  /** The step log. */
  get log(): readonly string[] {
    return this.session.events.flatMap(({ kind, text }) => (kind === 'recovery' ? [text] : []));
  }
  newest(column: keyof typeof sampleIndex): number {
    const rows = this.session.samples.since(Number.NEGATIVE_INFINITY);
    return rows[rows.length - sampleColumns.length + sampleIndex[column]] ?? Number.NaN;
  }

  async close(): Promise<void> {
    await this.session.stop();
    clearInterval(this.#pump);
  }
}

let port: Port;
beforeEach(() => {
  port = new Port();
});
afterEach(() => port.close());

const wellAfter = (step: RegExp) => (): boolean =>
  port.log.some((text) => /bytes move again after/.test(text) && step.test(text)) && port.isMeasuring;

describe('a device whose OUT endpoint is stuck', () => {
  test('and gets well when it is taken anew: the session goes on, and the gap is marked', async () => {
    await port.start();
    port.stick();
    await port.until(wellAfter(/give the device back and take it anew/));
    expect([port.opened, port.closed, port.resets]).toEqual([2, 1, 0]);
    expect(port.session.events.map(({ kind }) => kind)).toContain('gap');
    expect(port.log).toEqual([
      'cancel all transfers and ask anew, because nothing is completed',
      'cancel all transfers and ask anew: done',
      'clear the halts of both bulk endpoints, because nothing is completed',
      'clear the halts of both bulk endpoints: done',
      'select the data altsetting anew, because nothing is completed',
      'select the data altsetting anew: done',
      'give the device back and take it anew, because nothing is completed',
      'give the device back and take it anew: done',
      expect.stringMatching(/^bytes move again after .*, with: give the device back and take it anew$/),
    ]);
    await port.until(() => port.newest('recoveryRetries') === 4);
    expect(port.newest('recoveryResets')).toBe(0);
    expect(port.problems).toEqual([]);
    expect(port.session.snapshot.state).toBe('running');
  }, 60_000);

  test('and gets well by a reset of its port only', async () => {
    port.cure = 'reset';
    await port.start();
    port.stick();
    await port.until(wellAfter(/reset the device's port/), 40_000);
    expect([port.opened, port.resets]).toEqual([3, 1]);
    await port.until(() => port.newest('recoveryResets') === 1);
    expect(port.newest('recoveryRetries')).toBe(5);
    expect(port.problems).toEqual([]);
  }, 60_000);

  test('and does not get well: given up with a problem and what can be done about it', async () => {
    port.cure = 'never';
    await port.start();
    port.stick();
    await port.until(() => port.problems.includes('not-recovered'), 40_000);
    const problem = port.session.snapshot.problems.find(({ id }) => id === 'not-recovered');
    expect(problem).toMatchObject({ severity: 'error', remedy: expect.stringMatching(/Unplug it/) });
    expect(port.problems).not.toContain('recovering');
    expect(port.log.at(-1)).toMatch(/^given up after/);
    expect(port.session.isOver).toBe(false);
  }, 60_000);
});

describe('the sleep of the host', () => {
  test('is told: the device is given back before, and taken anew after it', async () => {
    await port.start();
    port.session.handleSuspend();
    await port.until(() => port.closed === 1);
    await new Promise((resolve) => {
      setTimeout(resolve, 600);
    });
    // Asleep: nothing is opened meanwhile.
    expect(port.opened).toBe(1);
    expect(port.session.snapshot.state).toBe('lost');
    expect(port.session.snapshot.problems[0]?.message).toMatch(/the host goes to sleep/);
    port.session.handleWake(undefined);
    await port.until(() => port.opened === 2 && port.isMeasuring);
    expect(port.problems).toEqual([]);
    expect(port.session.events.map(({ kind }) => kind)).toContain('gap');
  }, 60_000);

  test('is noticed afterwards only: the device is taken anew', async () => {
    await port.start();
    port.session.handleWake(3_600_000);
    await port.until(() => port.opened === 2 && port.isMeasuring);
    expect(port.closed).toBe(1);
  }, 60_000);

  test('a session that is stopped while the host sleeps ends', async () => {
    await port.start();
    port.session.handleSuspend();
    await port.until(() => port.closed === 1);
    expect((await port.session.stop()).state).toBe('stopped');
  }, 60_000);
});

describe('unplugged', () => {
  test('and nobody wants to wait: the session ends', async () => {
    await port.start();
    port.faults?.vanish(port.clock.nowUs());
    await port.until(() => port.session.isOver);
    expect(port.session.snapshot.state).toBe('lost');
  }, 60_000);

  test('and plugged in again, many times: the same session, each gap marked, counters going on', async () => {
    await port.close();
    port = new Port(Number.POSITIVE_INFINITY);
    await port.start();
    for (let times = 1; times <= 10; times++) {
      port.isThere = false;
      port.faults?.vanish(port.clock.nowUs());
      await port.until(() => port.session.snapshot.state === 'lost' && port.closed === times);
      port.isThere = true;
      port.plugged.emit();
      await port.until(() => port.opened === times + 1 && port.isMeasuring);
    }
    expect(port.session.events.filter(({ kind }) => kind === 'gap')).toHaveLength(10);
    expect(port.session.events.filter(({ kind }) => kind === 'unplug')).toHaveLength(10);
    expect(port.problems).toEqual([]);
    // Two rows for each gap, in which nothing is known but the time.
    const rows = port.session.samples.since(Number.NEGATIVE_INFINITY);
    let gaps = 0;
    for (let at = 0; at < rows.length; at += sampleColumns.length) {
      if (Number.isNaN(rows[at + sampleIndex.inflightBytes])) gaps++;
    }
    expect(gaps).toBe(20);
  }, 60_000);
});
