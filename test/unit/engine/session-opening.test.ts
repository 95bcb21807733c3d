import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { Device } from '../../../src/contract/device.ts';
import { defaultSessionSettings } from '../../../src/contract/settings.ts';
import { DeviceSession } from '../../../src/engine/device-session.ts';
import type { OpenedDevice } from '../../../src/engine/opened-device.ts';

/** A session that is ended while its device is still being opened: the device has to be given back all the same. */

const device: Device = {
  id: 'usb:1-1',
  mode: 'drive',
  name: 'modem',
  speed: 'high',
  state: 'available',
  problems: [],
};

let given: string[];
let opening: { resolve(opened: OpenedDevice): void; reject(error: unknown): void };
let session: DeviceSession;

function openedDevice(): OpenedDevice {
  return {
    loop: {
      nowUs: () => 0,
      run: () => given.push('run'),
      add: () => given.push('add'),
      running: true,
      close: () => given.push('loop closed'),
    },
    text: 'a modem',
    createPath: () => {
      throw new Error('nothing is to be measured any more');
    },
    close: async () => {
      given.push('given back');
      return [];
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
  given = [];
  session = new DeviceSession({
    id: 's1',
    device,
    settings: defaultSessionSettings,
    startedAt: '2025-01-01T00:00:00Z',
    open: () =>
      new Promise((resolve, reject) => {
        opening = { resolve, reject };
      }),
    reopen: undefined,
    record: undefined,
    recordingRequired: false,
    seed: 1,
    log: silentLog,
  });
  void session.start();
});

afterEach(() => vi.useRealTimers());

test('its end waits for the opening, and gives back what was opened', async () => {
  const ended = session.stop();
  await vi.advanceTimersByTimeAsync(100);
  expect(session.isOver).toBe(false);
  opening.resolve(openedDevice());
  expect((await ended).state).toBe('stopped');
  expect(given).toEqual(['loop closed', 'given back']);
  expect(vi.getTimerCount()).toBe(0);
});

test('an opening that fails meanwhile is no failure of the session', async () => {
  const ended = session.stop();
  opening.reject(new AppError('access-denied', 'no'));
  expect((await ended).state).toBe('stopped');
  expect(session.error).toBeUndefined();
  expect(given).toEqual([]);
});

test('an opening that never ends does not keep the session; what is opened later is given back at once', async () => {
  const ended = session.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect((await ended).state).toBe('stopped');
  opening.resolve(openedDevice());
  await vi.advanceTimersByTimeAsync(0);
  expect(given).toEqual(['loop closed', 'given back']);
});
