import { expect, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { defaultSessionSettings } from '../../../src/contract/settings.ts';
import { DeviceSession } from '../../../src/engine/device-session.ts';
import type { MeasurementObserver } from '../../../src/engine/measurement-path.ts';

test('settings that a device turns out to have are those of its session', async () => {
  const observers: MeasurementObserver[] = [];
  const session = new DeviceSession({
    id: 'session-1',
    device: {
      id: 'net:usb0',
      mode: 'observe',
      name: 'usb0',
      speed: 'unknown',
      state: 'available',
      problems: [],
    },
    settings: defaultSessionSettings,
    startedAt: '2026-01-01T00:00:00Z',
    open: async () => ({
      loop: { nowUs: () => 0, run: (action) => action(0), add() {}, running: true, close() {} },
      text: 'opened',
      createPath: ({ settings, observer }) => {
        observers.push(observer);
        return {
          settings,
          start() {},
          configure() {},
          stop: (nowUs, done) => done(undefined, nowUs),
          poll() {},
          pollAtUs: () => Number.POSITIVE_INFINITY,
        };
      },
      close: async () => [],
    }),
    reopen: undefined,
    record: undefined,
    recordingRequired: false,
    seed: 1,
    log: silentLog,
  });
  await session.start();
  let changes = 0;
  session.onChange(() => changes++);
  const bql = { ...defaultSessionSettings.bql, limitMinBytes: 3000 };
  observers[0]?.handleSettings({ ...defaultSessionSettings, bql });
  expect(session.snapshot.settings.bql.limitMinBytes).toBe(3000);
  expect(changes).toBe(1);
  await session.stop();
});
