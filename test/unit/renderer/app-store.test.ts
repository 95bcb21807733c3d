import { signal } from '@preact/signals';
import { describe, expect, test } from 'vitest';
import type { EngineLink, LinkState } from '../../../renderer/engine-link.ts';
import { AppStore, deviceKey, experimentKey, settingsKey } from '../../../renderer/store/app-store.ts';
import { type DeviceEntry, problemsOf, statusOf } from '../../../renderer/store/device-entry.ts';
import { Preferences } from '../../../renderer/store/preferences.ts';
import { handleShortcut } from '../../../renderer/views/shortcuts.ts';
import { AppError } from '../../../src/base/errors.ts';
import { FakeEngine, type FakeEngineOptions } from '../../harness/fake-engine.ts';

const modem = 'sim:modem';

class Bench {
  readonly engine: FakeEngine;
  readonly state = signal<LinkState>({ phase: 'connecting' });
  readonly store: AppStore;
  nowMs = 1000;
  drawn = 0;

  constructor(options: FakeEngineOptions = {}) {
    this.engine = new FakeEngine(options);
    const link: EngineLink = { state: this.state, problem: signal(undefined), retry: () => this.open() };
    this.store = new AppStore(
      link,
      new Preferences(undefined, { wide: true }),
      () => this.nowMs,
      () => this.drawn++,
    );
  }

  open(): void {
    this.state.value = { phase: 'open', api: this.engine };
  }

  /** Lets the engine and the window's clock go on. */
  pass(seconds: number): void {
    for (let i = 0; i < seconds * 20; i++) {
      this.nowMs += 50;
      this.engine.advance(50_000);
    }
    this.store.tick();
  }

  get entry(): DeviceEntry {
    const entry = this.store.engine.entries.value.find((one) => one.device.id === modem);
    if (entry === undefined) throw new Error('the modem is not in the list');
    return entry;
  }
}

async function runningBench(seconds = 5): Promise<Bench> {
  const bench = new Bench();
  bench.open();
  bench.store.select(modem);
  expect(await bench.store.start(modem)).toBe(true);
  bench.pass(seconds);
  return bench;
}

describe('the way to the engine', () => {
  test('devices come when it opens and stay on show when it breaks', () => {
    const bench = new Bench();
    expect(bench.store.engine.ready.value).toBe(false);
    bench.open();
    expect(bench.store.engine.ready.value).toBe(true);
    expect(bench.store.engine.entries.value.map((entry) => entry.device.id)).toEqual([
      'sim:modem',
      'sim:adapter',
    ]);
    bench.state.value = { phase: 'gone', reason: 'gone', retryAtMs: undefined };
    expect(bench.store.engine.entries.value).toHaveLength(2);
  });

  test('what is asked while it is gone fails with words and is kept until it works', async () => {
    const bench = new Bench();
    expect(await bench.store.start(modem)).toBe(false);
    expect(bench.store.failures.value.get(deviceKey(modem))?.kind).toBe('engine-gone');
    bench.open();
    expect(await bench.store.start(modem)).toBe(true);
    expect(bench.store.failures.value.size).toBe(0);
    expect(bench.store.pending.value.size).toBe(0);
  });

  test('after a reconnection everything is there once, not twice', async () => {
    const bench = await runningBench();
    const data = bench.store.engine.dataOf('session-1');
    const rows = data.samples.length;
    const events = data.events.value.length;
    expect(rows).toBeGreaterThan(50);
    bench.state.value = { phase: 'gone', reason: 'gone', retryAtMs: undefined };
    bench.pass(1);
    expect(data.samples.length).toBe(rows);
    bench.open();
    expect(data.samples.length).toBe(rows + 20);
    expect(data.events.value.length).toBe(events);
  });
});

describe('a session', () => {
  test('starts with the draft and goes from stage to running', async () => {
    const bench = new Bench();
    bench.open();
    await bench.store.configure(bench.entry, {
      bql: { limitMinBytes: 3028 },
      load: { rateBitsPerSecond: 5e6 },
    });
    bench.store.drafts.setRecord(modem, false);
    bench.store.drafts.setTarget(modem, '10.0.0.9');
    await bench.store.start(modem);
    expect(bench.engine.calls.at(-1)).toMatchObject({
      method: 'session.start',
      params: {
        deviceId: modem,
        target: '10.0.0.9',
        record: false,
        settings: { bql: { enabled: true, limitMinBytes: 3028 }, load: { rateBitsPerSecond: 5e6 } },
      },
    });
    expect(statusOf(bench.entry)).toEqual({ word: 'Connecting: open', tone: 'busy' });
    bench.pass(1);
    expect(statusOf(bench.entry)).toEqual({ word: 'Running', tone: 'good' });
    expect(bench.drawn).toBeGreaterThan(0);
  });

  test('switching BQL off raises the round trip by what 300 frames take', async () => {
    const bench = await runningBench(10);
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    const readings = bench.store.readingsOf(session);
    bench.pass(1);
    const before = readings.value?.now.rttP50Us ?? Number.NaN;
    await bench.store.configure(bench.entry, { bql: { enabled: false } });
    bench.pass(10);
    const off = readings.value;
    expect(off?.now.bqlEnabled).toBe(false);
    expect(off?.other?.rttP50Us).toBeCloseTo(before, -4);
    expect(((off?.now.rttP50Us ?? 0) - before) / 1000).toBeGreaterThan(340);
    expect(((off?.now.rttP50Us ?? 0) - before) / 1000).toBeLessThan(370);
  });

  test('that cannot start says why', async () => {
    const bench = new Bench();
    bench.open();
    bench.engine.refusals.set(
      'session.start',
      new AppError('device-busy', 'in use', { remedy: 'Close it.' }),
    );
    expect(await bench.store.start(modem)).toBe(false);
    expect(bench.store.failures.value.get(deviceKey(modem))).toMatchObject({
      kind: 'device-busy',
      remedy: 'Close it.',
    });
  });

  test('that ends is recorded only, and its device is ready again', async () => {
    const bench = await runningBench();
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    await bench.store.stop(session);
    expect(bench.entry.session?.state).toBe('stopped');
    expect(statusOf(bench.entry)).toEqual({ word: 'Ready, recorded', tone: 'idle' });
    expect(bench.store.liveEntries.value).toEqual([]);
  });

  test('whose device is pulled out stays in the list', async () => {
    const bench = await runningBench();
    bench.engine.unplug(modem);
    expect(statusOf(bench.entry)).toEqual({ word: 'Lost', tone: 'error' });
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    await bench.store.stop(session);
    await expect(bench.engine.call('devices.list', {})).resolves.toHaveLength(1);
    expect(bench.entry.session?.state).toBe('stopped');
  });

  test('whose device comes back goes on, with a gap', async () => {
    const bench = await runningBench();
    const { samples } = bench.store.engine.dataOf('session-1');
    bench.engine.unplug(modem);
    const lastUs = samples.lastUs;
    bench.pass(3);
    expect(samples.lastUs).toBe(lastUs);
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    expect(bench.store.viewEndUs(session)).toBeGreaterThan(lastUs + 2.5e6);
    bench.engine.replug(modem);
    bench.pass(1);
    expect(statusOf(bench.entry).word).toBe('Running');
    expect((samples.times[samples.indexAtOrAfter(lastUs, true)] ?? 0) - lastUs).toBeGreaterThan(2.9e6);
  });

  test('that fails at a stage says so until it is started again', async () => {
    const bench = new Bench();
    bench.open();
    bench.engine.failNextStart(modem);
    await bench.store.start(modem);
    bench.pass(2);
    expect(statusOf(bench.entry)).toEqual({ word: 'Failed', tone: 'error' });
    await bench.store.start(modem);
    bench.pass(2);
    expect(statusOf(bench.entry).word).toBe('Running');
    expect(bench.entry.session?.id).toBe('session-2');
  });

  test('a refused setting is told at the settings', async () => {
    const bench = await runningBench();
    bench.engine.refusals.set('session.configure', new AppError('bad-input', 'no'));
    await bench.store.configure(bench.entry, { ping: { intervalMs: 20 } });
    expect(bench.store.failures.value.get(settingsKey(modem))?.kind).toBe('bad-input');
    await bench.store.configure(bench.entry, { ping: { intervalMs: 20 } });
    expect(bench.store.failures.value.size).toBe(0);
    expect(bench.entry.session?.settings.ping.intervalMs).toBe(20);
  });

  test('of an earlier window is shown when a window opens', async () => {
    const bench = new Bench();
    await bench.engine.call('session.start', { deviceId: 'sim:adapter', record: true });
    bench.open();
    expect(bench.store.selected.value?.device.id).toBe('sim:adapter');
  });
});

describe('the view', () => {
  test('stands still while it is paused and measuring goes on', async () => {
    const bench = await runningBench();
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    bench.store.togglePause([session]);
    const edgeUs = bench.store.viewEndUs(session);
    const rows = bench.store.engine.dataOf(session.id).samples.length;
    bench.pass(3);
    expect(bench.store.viewEndUs(session)).toBe(edgeUs);
    expect(bench.store.engine.dataOf(session.id).samples.length).toBeGreaterThan(rows);
    bench.store.togglePause([session]);
    expect(bench.store.viewEndUs(session)).toBeGreaterThan(edgeUs + 2.9e6);
  });

  test('of everything is as long as what is remembered, in steps', async () => {
    const bench = await runningBench(15);
    const session = bench.entry.session;
    if (session === undefined) throw new Error('no session');
    bench.store.view.windowSeconds.value = Number.POSITIVE_INFINITY;
    expect(bench.store.viewLengthUs(session)).toBe(20e6);
  });
});

describe('shortcuts', () => {
  test('do what they say', async () => {
    const bench = await runningBench();
    let helpOpened = 0;
    const press = (key: string): boolean => handleShortcut(bench.store, key, () => helpOpened++);
    expect(press('b')).toBe(true);
    expect(bench.entry.session?.settings.bql.enabled).toBe(false);
    expect(press('l')).toBe(true);
    expect(bench.entry.session?.settings.load.enabled).toBe(false);
    expect(press('3')).toBe(true);
    expect(bench.store.view.windowSeconds.value).toBe(60);
    expect(press(' ')).toBe(true);
    expect(bench.store.view.isFrozen('session-1')).toBe(true);
    expect(press('[')).toBe(true);
    expect(bench.store.preferences.listOpen.value).toBe(false);
    expect(press('?')).toBe(true);
    expect(helpOpened).toBe(1);
    expect(press('s')).toBe(true);
    expect(bench.entry.session?.state).toBe('stopped');
    expect(press('x')).toBe(false);
    expect(press('6')).toBe(false);
  });

  test('without a device, those about a device do nothing', () => {
    const bench = new Bench();
    bench.open();
    expect(['b', 'l', 's', ' '].map((key) => handleShortcut(bench.store, key, () => undefined))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

test('problems of a device and its session are told once each, the worst first', () => {
  const bench = new Bench();
  bench.open();
  bench.engine.setProblems(modem, [
    { id: 'a', severity: 'info', message: 'a' },
    { id: 'b', severity: 'error', message: 'b' },
  ]);
  expect(problemsOf(bench.entry).map((problem) => problem.id)).toEqual(['b', 'a']);
});

describe('preferences', () => {
  class MemoryStorage {
    readonly items = new Map<string, string>();
    getItem(key: string): string | null {
      return this.items.get(key) ?? null;
    }
    setItem(key: string, value: string): void {
      this.items.set(key, value);
    }
  }

  test('are there again at the next visit; side panels only where there is room', () => {
    const storage = new MemoryStorage();
    const first = new Preferences(storage, { wide: true });
    first.theme.value = 'dark';
    first.touch.value = true;
    first.drawerOpen.value = false;
    const second = new Preferences(storage, { wide: true });
    expect([second.theme.value, second.touch.value, second.listOpen.value, second.drawerOpen.value]).toEqual([
      'dark',
      true,
      true,
      false,
    ]);
    const narrow = new Preferences(storage, { wide: false });
    expect([narrow.listOpen.value, narrow.drawerOpen.value]).toEqual([false, false]);
    narrow.listOpen.value = true;
    expect(new Preferences(storage, { wide: true }).drawerOpen.value).toBe(false);
    expect(new Preferences(storage, { wide: true }).listOpen.value).toBe(true);
  });

  test('a window that becomes narrow shows its charts; the panels come back with the room', () => {
    const storage = new MemoryStorage();
    const preferences = new Preferences(storage, { wide: true });
    const open = (): boolean[] => [preferences.listOpen.value, preferences.drawerOpen.value];
    preferences.setWide(false);
    expect(open()).toEqual([false, false]);
    preferences.listOpen.value = true;
    preferences.drawerOpen.value = true;
    expect(open()).toEqual([false, true]);
    preferences.listOpen.value = true;
    expect(open()).toEqual([true, false]);
    preferences.setWide(true);
    expect(open()).toEqual([true, true]);
    expect(new Preferences(storage, { wide: true }).drawerOpen.value).toBe(true);
  });

  test('that cannot be read or kept are the usual ones', () => {
    const storage = {
      getItem: () => '{"theme":"neon","touch":1',
      setItem: () => {
        throw new Error('full');
      },
    };
    const preferences = new Preferences(storage, { wide: true });
    preferences.touch.value = true;
    expect(preferences.theme.value).toBe('system');
  });
});

test('the fake engine gives the same for the same seed, and another for another', async () => {
  const valuesOf = async (seed: number): Promise<string> => {
    const engine = new FakeEngine({ seed });
    await engine.call('session.start', { deviceId: modem, record: false });
    const values: number[] = [];
    engine.subscribeTelemetry({ sessionId: 'session-1', table: 'samples', historySeconds: 0 }, (batch) => {
      values.push(...batch.values);
    });
    for (let i = 0; i < 100; i++) engine.advance(50_000);
    return values.join();
  };
  expect(await valuesOf(1)).toBe(await valuesOf(1));
  expect(await valuesOf(1)).not.toBe(await valuesOf(2));
});

describe('experiments', () => {
  test('start with the draft of the device, are followed, and stay on show once they are over', async () => {
    const bench = new Bench();
    bench.open();
    await bench.store.listScenarios();
    expect(bench.store.scenarios.value?.[0]?.name).toBe('quick-ab');
    bench.store.drafts.setRecord(modem, false);
    await bench.store.startExperiment(modem, 'quick-ab', 5e6);
    expect(bench.engine.calls.at(-1)).toMatchObject({
      method: 'experiment.start',
      params: { deviceId: modem, scenario: 'quick-ab', maxDataBytes: 5e6, record: false },
    });
    const id = bench.store.shownExperiment.value ?? '';
    const status = (): string | undefined => bench.store.engine.experiments.value.get(id)?.state;
    expect(status()).toBe('preparing');
    bench.pass(10);
    expect(status()).toBe('running');
    bench.pass(60);
    expect(status()).toBe('done');
    expect(bench.store.engine.experiments.value.get(id)?.verdict?.kind).toBe('improved');
  });

  test('a window that opens while one runs shows it, and one that was broken off goes on', async () => {
    const bench = new Bench();
    await bench.engine.call('experiment.start', { deviceId: modem, scenario: 'field-ab', record: true });
    bench.engine.advance(5e6);
    bench.open();
    const id = bench.store.shownExperiment.value;
    expect(id).toBeDefined();
    bench.state.value = { phase: 'gone', reason: 'gone', retryAtMs: undefined };
    bench.open();
    bench.pass(10);
    expect(bench.store.engine.experiments.value.get(id ?? '')?.state).toBe('running');
  });

  test('one that cannot start is a failure, and none is shown', async () => {
    const bench = new Bench();
    bench.open();
    bench.engine.refusals.set('experiment.start', new AppError('access-denied', 'another program has it'));
    await bench.store.startExperiment(modem, 'quick-ab', undefined);
    expect(bench.store.failures.value.get(experimentKey)?.kind).toBe('access-denied');
    expect(bench.store.shownExperiment.value).toBeUndefined();
  });
});
