import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Emitter } from '../../../src/base/emitter.ts';
import { AppError } from '../../../src/base/errors.ts';
import { DeviceWait } from '../../../src/engine/device-wait.ts';
import type { OpenedDevice } from '../../../src/engine/opened-device.ts';

/** A device that can be opened once the test says so. */
class Away {
  readonly changed = new Emitter<void>();
  readonly attempts: number[] = [];
  readonly told: string[] = [];
  closed = 0;
  error: AppError | undefined = new AppError('no-such-device', 'it is not there');
  /** Attempts hang until this is resolved. */
  gate: Promise<void> = Promise.resolve();
  readonly wait: DeviceWait;

  constructor(limitMs: number) {
    this.wait = new DeviceWait({
      open: async () => {
        this.attempts.push(Date.now());
        await this.gate;
        if (this.error !== undefined) throw this.error;
        return this.opened;
      },
      onChange: this.changed.event,
      limitMs,
      handleAttempt: (error) => this.told.push(error.message),
    });
  }

  readonly opened: OpenedDevice = {
    loop: {
      running: true,
      nowUs: () => 0,
      run: () => undefined,
      add: () => undefined,
      close: () => undefined,
    },
    text: '',
    createPath: () => {
      throw new Error('not in this test');
    },
    close: async () => {
      this.closed++;
      return [];
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('waiting for a device', () => {
  test('tries at growing distances, at most ten seconds apart', async () => {
    const away = new Away(Number.POSITIVE_INFINITY);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(away.attempts).toEqual([250, 750, 1750, 3750, 7750, 15_750, 25_750, 35_750, 45_750, 55_750]);
    expect(away.told).toHaveLength(10);
    away.error = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await away.wait.outcome).toEqual({ kind: 'opened', opened: away.opened });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(away.attempts).toHaveLength(11);
    expect(away.closed).toBe(0);
  });

  test('tries at once when something changed, and soon again', async () => {
    const away = new Away(Number.POSITIVE_INFINITY);
    await vi.advanceTimersByTimeAsync(20_000);
    away.attempts.length = 0;
    away.changed.emit();
    await vi.advanceTimersByTimeAsync(1000);
    expect(away.attempts).toEqual([20_000, 20_250, 20_750]);
    away.wait.cancel();
    expect(away.changed.listenerCount).toBe(0);
  });

  test('a change during an attempt brings another one', async () => {
    const away = new Away(Number.POSITIVE_INFINITY);
    let open: () => void = () => {};
    away.gate = new Promise((resolve) => {
      open = resolve;
    });
    await vi.advanceTimersByTimeAsync(300);
    away.changed.emit();
    away.changed.emit();
    expect(away.attempts).toHaveLength(1);
    open();
    await vi.advanceTimersByTimeAsync(0);
    expect(away.attempts).toHaveLength(2);
    away.wait.cancel();
  });

  test('gives up after its time', async () => {
    const away = new Away(5000);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await away.wait.outcome).toEqual({ kind: 'too-late' });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(away.attempts).toHaveLength(4);
  });

  test.each(['unsupported-device', 'internal'] as const)('%s: no second attempt', async (kind) => {
    const away = new Away(Number.POSITIVE_INFINITY);
    away.error = new AppError(kind, 'hopeless');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await away.wait.outcome).toEqual({ kind: 'failed', error: away.error });
    expect(away.attempts).toHaveLength(1);
  });

  test('what is opened when it is too late is closed again', async () => {
    const away = new Away(Number.POSITIVE_INFINITY);
    let open: () => void = () => {};
    away.gate = new Promise((resolve) => {
      open = resolve;
    });
    away.error = undefined;
    await vi.advanceTimersByTimeAsync(300);
    away.wait.cancel();
    expect(await away.wait.outcome).toEqual({ kind: 'cancelled' });
    open();
    await vi.advanceTimersByTimeAsync(0);
    expect(away.closed).toBe(1);
  });
});
