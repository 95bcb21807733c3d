/** A session on a device of a USB/IP server, over real sockets: how it starts, and what becomes of it without the server. */
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { defaultSessionSettings, type SessionSettings } from '../../../src/contract/settings.ts';
import { probeColumns, probeIndex, sampleColumns, sampleIndex } from '../../../src/contract/telemetry.ts';
import type { ExperimentPhase } from '../../../src/probes/experiment.ts';
import type { DeviceSession } from '../../../src/engine/device-session.ts';
import { Engine } from '../../../src/engine/engine.ts';
import { monotonicClock } from '../../../src/engine/monotonic-clock.ts';
import { RemoteSource } from '../../../src/engine/remote-source.ts';
import { startUsbipHost, type UsbipHost } from '../../../src/hosts/usbip/usbip-host.ts';
import { cdcCatalogue } from '../sim/sim-setup.ts';
import { adapterPersonalities } from '../../../src/sim/adapter-personalities.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import { SimUsbipExports } from '../../../src/sim/usbip-exports.ts';
import { importDevice } from '../../../src/transports/usbip-socket.ts';
import { personality } from '../sim/sim-setup.ts';

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function serve(port = 0, devices: readonly SimPersonality[] = cdcCatalogue): Promise<UsbipHost> {
  const host = await startUsbipHost({
    exports: new SimUsbipExports(devices, 1),
    host: '127.0.0.1',
    port,
    clock: monotonicClock,
    log: silentLog,
    onEvent: () => undefined,
  });
  closers.push(() => host.close());
  return host;
}

function engineOf(watch = false): Engine {
  const remote = new RemoteSource({ clock: monotonicClock, log: silentLog, watch });
  let sessions = 0;
  const engine = new Engine({
    sources: [remote],
    remote,
    archive: undefined,
    version: '0',
    host: 'cli',
    platform: 'test',
    wallClock: () => '2025-01-01T00:00:00Z',
    newSessionId: () => `s${++sessions}`,
    newSeed: () => 1,
    log: silentLog,
  });
  closers.push(() => engine.close());
  return engine;
}

const settings: SessionSettings = {
  ...defaultSessionSettings,
  load: { ...defaultSessionSettings.load, enabled: true, rateBitsPerSecond: 1e6 },
  ping: { ...defaultSessionSettings.ping, intervalMs: 20, timeoutMs: 300 },
  sampleRateHz: 50,
};

async function until(session: DeviceSession, condition: () => boolean, limitMs = 8000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > endMs) {
      throw new Error(
        `not within ${limitMs} ms; the session is ${JSON.stringify(session.snapshot, undefined, 1)}`,
      );
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

/** Rows of a table so far. */
function rows(session: DeviceSession, table: 'samples' | 'probes'): Float64Array[] {
  const columns = (table === 'samples' ? sampleColumns : probeColumns).length;
  const values = session[table].since(Number.NEGATIVE_INFINITY);
  return Array.from({ length: values.length / columns }, (_, i) =>
    values.subarray(i * columns, (i + 1) * columns),
  );
}

const answered = (session: DeviceSession) => (): boolean =>
  rows(session, 'probes').filter((row) => !Number.isNaN(row[probeIndex.rttUs])).length > 5;

function loaded(name: string, bql: 'on' | 'off', durationUs: number): ExperimentPhase {
  return {
    name,
    kind: 'load',
    bql,
    arm: `BQL ${bql}`,
    pair: 1,
    direction: 'up',
    settings: { bql: { enabled: bql === 'on' }, qdisc: undefined, load: undefined },
    by: 'udp',
    durationUs,
    settleUs: 0,
    tailUs: 0,
  };
}

describe('servers', () => {
  test('the devices of a server that was added, with the drivers they will have', async () => {
    const host = await serve();
    const engine = engineOf();
    expect(await engine.devices()).toEqual([]);
    engine.addServer(`127.0.0.1:${host.port}`);
    expect(
      (await engine.devices()).map(({ id, mode, minidriver, state }) => [id, mode, minidriver, state]),
    ).toEqual(
      ['1-1', '1-2', '1-3', '1-4'].map((busId, i) => [
        `usbip://127.0.0.1:${host.port}/${busId}`,
        'remote',
        i % 2 === 0 ? 'cdc_ether' : 'cdc_ncm',
        'available',
      ]),
    );
    engine.removeServer(`127.0.0.1:${host.port}`);
    expect(await engine.devices()).toEqual([]);
  });

  test('adapters that are known by their ids alone', async () => {
    const host = await serve(0, adapterPersonalities);
    const engine = engineOf();
    engine.addServer(`127.0.0.1:${host.port}`);
    expect((await engine.devices()).map(({ minidriver }) => minidriver)).toEqual([
      'ax88179_178a',
      'asix',
      'asix',
      'asix',
    ]);
  });

  test('one that is away, and a name that is none', async () => {
    const host = await serve();
    await host.close();
    const engine = engineOf();
    engine.addServer(`127.0.0.1:${host.port}`);
    expect(await engine.devices()).toEqual([]);
    expect(engine.servers).toMatchObject([
      {
        name: `127.0.0.1:${host.port}`,
        problem: { severity: 'error', message: expect.stringMatching(/no USB\/IP server/) },
      },
    ]);
    expect(() => engine.addServer('a b')).toThrow(/not the name of a server/);
    expect(() => engine.addServer('::1')).toThrow(/not the name of a server/);
  });

  test('watched: the list is told anew when the server comes and goes', async () => {
    const engine = engineOf(true);
    const host = await serve();
    engine.addServer(`127.0.0.1:${host.port}`);
    let latest: readonly unknown[] = [];
    const dispose = engine.subscribe('devices', {}, (devices) => (latest = devices));
    const endMs = performance.now() + 3000;
    while (latest.length < 4 && performance.now() < endMs) {
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    }
    expect(latest).toHaveLength(4);
    dispose();
  });
});

describe('a session', () => {
  test('measures, is listed while it has the device, and gives it back', async () => {
    const host = await serve();
    const engine = engineOf();
    const deviceId = `usbip://127.0.0.1:${host.port}/1-2`;
    const session = await engine.startSession({ deviceId, settings, record: false });
    await until(session, answered(session));
    expect(session.snapshot).toMatchObject({
      state: 'running',
      device: {
        id: deviceId,
        name: 'Queuescope virtual Ethernet adapter',
        minidriver: 'cdc_ncm',
        speed: 'super',
      },
    });
    expect((await engine.devices()).find(({ id }) => id === deviceId)).toMatchObject({
      state: 'running',
      sessionId: session.id,
    });
    expect(await session.stop()).toMatchObject({ state: 'stopped', problems: [] });
    // Another client can have it now.
    const { socket } = await importDevice({ host: '127.0.0.1', port: host.port }, '1-2');
    socket.destroy();
  });

  test('a device that another client has: failed, with the reason', async () => {
    const host = await serve();
    const { socket } = await importDevice({ host: '127.0.0.1', port: host.port }, '1-1');
    const engine = engineOf();
    const session = await engine.startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-1`,
      settings,
      record: false,
      waitMs: 10_000,
    });
    expect(await session.ended).toMatchObject({ state: 'failed' });
    expect(session.error).toMatchObject({ kind: 'device-busy' });
    socket.destroy();
  });

  test('without waiting, the server’s end is the session’s', async () => {
    const host = await serve();
    const session = await engineOf().startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-1`,
      settings,
      record: false,
    });
    await until(session, answered(session));
    await host.close();
    const ended = await session.ended;
    expect(ended.state).toBe('lost');
    expect(session.error).toMatchObject({
      kind: 'device-gone',
      message: expect.stringMatching(/was lost: the/),
    });
    expect(ended.problems).toMatchObject([{ id: 'gone', remedy: expect.any(String) }]);
    expect(session.events.filter(({ kind }) => kind === 'unplug')).toHaveLength(1);
  });

  test('waiting: it goes on in the same session, and the gap is marked', async () => {
    const host = await serve();
    const engine = engineOf();
    const deviceId = `usbip://127.0.0.1:${host.port}/1-2`;
    const session = await engine.startSession({ deviceId, settings, record: false, waitMs: 30_000 });
    await until(session, answered(session));
    session.configure({ bql: { limitMinBytes: 4321 } });
    await host.close();
    await until(session, () => session.snapshot.state === 'lost');
    expect(session.isOver).toBe(false);
    expect(session.snapshot.problems).toMatchObject([{ id: 'gone', severity: 'error' }]);
    expect(session.snapshot.stages[0]).toMatchObject({ name: 'open', status: 'active' });
    await until(session, () =>
      session.snapshot.problems.some(({ message }) => /no USB\/IP server listens/.test(message)),
    );
    expect(await engine.devices()).toMatchObject([{ id: deviceId, state: 'lost', sessionId: session.id }]);
    const before = { samples: rows(session, 'samples').length, probes: rows(session, 'probes').length };
    expect(() => session.configure({ load: { enabled: false } })).toThrow(/not running/);
    session.note('the plug was pulled');

    await serve(host.port);
    await until(session, () => session.snapshot.state === 'running');
    await until(session, () => rows(session, 'probes').length > before.probes + 10);
    expect(session.snapshot.problems).toEqual([]);
    expect(session.snapshot.settings.bql.limitMinBytes).toBe(4321);
    expect(session.events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['unplug', 'note', 'gap']));
    const gap = session.events.find(({ kind }) => kind === 'gap');
    expect(gap?.text).toMatch(/^the device is back after/);

    const samples = rows(session, 'samples');
    const times = samples.map((row) => row[sampleIndex.timeUs] ?? 0);
    expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
    // Nothing is known between the last row before the gap and the first one after it.
    const unknown = samples.filter((row) => Number.isNaN(row[sampleIndex.inflightBytes]));
    expect(unknown).toHaveLength(2);
    expect((unknown[1]?.[0] ?? 0) - (unknown[0]?.[0] ?? 0)).toBeGreaterThan(200_000);
    expect(Math.abs((unknown[1]?.[0] ?? 0) - (gap?.timeUs ?? 0))).toBeLessThan(1000);
    expect(unknown.every((row) => row.slice(1).every(Number.isNaN))).toBe(true);
    const sequences = rows(session, 'probes').map((row) => row[probeIndex.sequence] ?? -1);
    expect(new Set(sequences).size).toBe(sequences.length);
    expect(await session.stop()).toMatchObject({ state: 'stopped' });
  });

  test('waiting: too long', async () => {
    const host = await serve();
    const session = await engineOf().startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-1`,
      settings,
      record: false,
      waitMs: 400,
    });
    await until(session, answered(session));
    await host.close();
    expect(await session.ended).toMatchObject({ state: 'lost', problems: [{ id: 'gone' }] });
    expect(session.error).toMatchObject({ kind: 'device-gone' });
    expect(session.isOver).toBe(true);
  });

  test('stopped while it waits, and an experiment with it', async () => {
    const host = await serve();
    const session = await engineOf().startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-1`,
      settings,
      record: false,
      waitMs: Number.POSITIVE_INFINITY,
    });
    await until(session, answered(session));
    const run = session.run([loaded('load', 'on', 60_000_000)]);
    await host.close();
    await until(session, () => session.snapshot.state === 'lost');
    expect(await session.stop()).toMatchObject({ state: 'stopped' });
    expect(await run).toHaveLength(1);
    // One that begins without a device ends with the session, too.
    expect(await session.run([])).toEqual([]);
  });

  test('an experiment goes on after the gap', async () => {
    const host = await serve();
    const session = await engineOf().startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-2`,
      settings,
      record: false,
      waitMs: 30_000,
    });
    await until(session, answered(session));
    const run = session.run([loaded('one', 'off', 600_000), loaded('two', 'on', 400_000)]);
    await until(session, () => session.events.some(({ kind }) => kind === 'phase'));
    await host.close();
    await until(session, () => session.snapshot.state === 'lost');
    await serve(host.port);
    const phases = await run;
    expect(phases.map(({ phase }) => phase.name)).toEqual(['one', 'two']);
    expect(session.snapshot.settings.bql.enabled).toBe(true);
    await session.stop();
  });

  test('another device in its place is not the one that went away', async () => {
    const host = await serve();
    const session = await engineOf().startSession({
      deviceId: `usbip://127.0.0.1:${host.port}/1-1`,
      settings,
      record: false,
      waitMs: 30_000,
    });
    await until(session, answered(session));
    await host.close();
    const other = await serve(host.port, [personality('tether-usb2')]);
    await until(session, () =>
      session.snapshot.problems.some(({ message }) => /another device in the place/.test(message)),
    );
    await other.close();
    await serve(host.port);
    await until(session, () => session.snapshot.state === 'running', 12_000);
    expect(await session.stop()).toMatchObject({ state: 'stopped', device: { productId: 1 } });
  }, 20_000);
});
