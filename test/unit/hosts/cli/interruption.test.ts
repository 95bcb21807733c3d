import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Interruption } from '../../../../src/hosts/cli/interruption.ts';

/** What ends a command: nothing but a second signal may end the process before everything was given back. */

class FakeProcess extends EventEmitter {
  readonly stdout = new EventEmitter();
  readonly stderr = new EventEmitter();
  readonly exit = vi.fn<(code: number) => void>();
}

let fake: FakeProcess;
let faults: unknown[];
let finishClosing: () => void;
let interruption: Interruption;

beforeEach(() => {
  vi.useFakeTimers();
  fake = new FakeProcess();
  faults = [];
  const closed = new Promise<void>((resolve) => {
    finishClosing = resolve;
  });
  interruption = new Interruption(fake as unknown as NodeJS.Process, {
    handleFault: (thrown) => faults.push(thrown),
    close: () => closed,
  });
});

afterEach(() => vi.useRealTimers());

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('%s asks for the end; a second one is the end', (signal) => {
  fake.emit(signal);
  expect(interruption.signal.aborted).toBe(true);
  expect(fake.exit).not.toHaveBeenCalled();
  fake.emit(signal);
  expect(fake.exit).toHaveBeenCalledWith(130);
});

test.each(['stdout', 'stderr'] as const)('a reader of %s that went away asks for the end', (stream) => {
  fake[stream].emit('error', Object.assign(new Error('broken pipe'), { code: 'EPIPE' }));
  fake[stream].emit('error', Object.assign(new Error('broken pipe'), { code: 'EPIPE' }));
  expect(interruption.signal.aborted).toBe(true);
  expect(interruption.readerGone).toBe(true);
  expect(interruption.writeFailure).toBeUndefined();
  expect(fake.exit).not.toHaveBeenCalled();
});

test('a full disk behind standard output is a failure', () => {
  fake.stdout.emit('error', Object.assign(new Error('no space'), { code: 'ENOSPC' }));
  expect(interruption.signal.aborted).toBe(true);
  expect(interruption.readerGone).toBe(false);
  expect(interruption.writeFailure?.code).toBe('ENOSPC');
});

test.each(['uncaughtException', 'unhandledRejection'])(
  '%s: told, all given back, then exit code 1',
  async (event) => {
    const fault = new Error('our own');
    fake.emit(event, fault);
    fake.emit(event, fault);
    expect(faults).toEqual([fault, fault]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(fake.exit).not.toHaveBeenCalled();
    finishClosing();
    await vi.advanceTimersByTimeAsync(0);
    expect(fake.exit.mock.calls).toEqual([[1]]);
  },
);

test('a fault after which nothing can be given back still ends the process', async () => {
  fake.emit('uncaughtException', new Error('our own'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(fake.exit).toHaveBeenCalledWith(1);
});

test('once it is over, signals are the system’s again', () => {
  interruption.dispose();
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection']) {
    expect(fake.listenerCount(event)).toBe(0);
  }
});
