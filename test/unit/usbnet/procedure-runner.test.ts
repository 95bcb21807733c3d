import { describe, expect, test } from 'vitest';
import { clearHalt, controlIn, DriverError, type Procedure, sleep } from '../../../src/usbnet/procedure.ts';
import { type ProcedureOutcome, ProcedureRunner } from '../../../src/usbnet/procedure-runner.ts';
import { ManualTransport } from '../../harness/manual-transport.ts';
import { makeDevice } from './hand-made-device.ts';

interface Run {
  readonly transport: ManualTransport;
  readonly runner: ProcedureRunner;
  /** What happened, in order. */
  readonly log: string[];
  readonly start: (name: string, procedure: Procedure<unknown>, nowUs?: number) => void;
}

function makeRun(): Run {
  const transport = new ManualTransport(makeDevice());
  const runner = new ProcedureRunner(transport);
  transport.setHandler({
    handleTransferDone: () => {},
    handleRequestDone: (result, nowUs) => runner.handleRequestDone(result, nowUs),
    handleGone: (nowUs) => runner.handleGone(nowUs),
  });
  const log: string[] = [];
  const show = (outcome: ProcedureOutcome<unknown>): string =>
    outcome.ok ? String(outcome.value) : String(outcome.error);
  return {
    transport,
    runner,
    log,
    start: (name, procedure, nowUs = 0) =>
      runner.start(procedure, nowUs, (outcome, atUs) => log.push(`${name} ${show(outcome)} @${atUs}`)),
  };
}

function* ask(value: number): Procedure<string> {
  const answer = yield* controlIn('standard-device', 6, value, 0, 18);
  return `${answer.status} ${[...answer.data].join()}`;
}

describe('requests', () => {
  test('a procedure begins at once if nothing else runs', () => {
    const { transport, start } = makeRun();
    start('a', ask(1));
    expect(transport.requests).toHaveLength(1);
  });

  test('an answer goes to the procedure that asked; the next one begins after it', () => {
    const { transport, start, log } = makeRun();
    start('a', ask(1));
    start('b', ask(2));
    expect(transport.requests).toHaveLength(1);
    expect(transport.pendingRequest).toEqual({
      kind: 'control-in',
      requestType: 0x80,
      request: 6,
      value: 1,
      index: 0,
      length: 18,
      timeoutMs: 5000,
    });
    transport.answer({ status: 'completed', data: Uint8Array.of(1, 2) }, 10);
    expect(transport.pendingRequest).toMatchObject({ value: 2 });
    transport.answer('stall', 20);
    expect(log).toEqual(['a completed 1,2 @10', 'b stall  @20']);
  });

  test('what a procedure throws is its outcome, and the next one runs', () => {
    const { transport, start, log } = makeRun();
    start(
      'a',
      (function* fail(): Procedure<void> {
        const status = yield* clearHalt(0x02);
        throw new DriverError('do it', 'it broke', status);
      })(),
    );
    start('b', ask(2));
    transport.answer('stall', 5);
    transport.answer('completed', 6);
    expect(log).toEqual(['a DriverError: could not do it: it broke @5', 'b completed  @6']);
  });

  test('a procedure that is started by the end of another one, or from inside it, waits its turn', () => {
    const { runner, transport, start, log } = makeRun();
    runner.start(ask(1), 0, () => start('child', ask(3)));
    start('sibling', ask(2));
    transport.answer('completed', 1);
    expect(transport.pendingRequest).toMatchObject({ value: 2 });
    transport.answer('completed', 2);
    transport.answer('completed', 3);
    expect(log).toEqual(['sibling completed  @2', 'child completed  @3']);
  });
});

describe('time', () => {
  test('a sleep lasts as long as it says', () => {
    const { runner, start, log } = makeRun();
    start(
      'a',
      (function* nap(): Procedure<string> {
        yield* sleep(3000);
        return 'awake';
      })(),
      100,
    );
    expect(runner.pollAtUs()).toBe(3100);
    runner.poll(3099);
    expect(log).toEqual([]);
    runner.poll(3100);
    expect(log).toEqual(['a awake @3100']);
    expect(runner.pollAtUs()).toBe(Number.POSITIVE_INFINITY);
  });

  test('a request that is never answered is given up a second after its own time limit', () => {
    const { runner, start, log } = makeRun();
    start('a', ask(1));
    expect(runner.pollAtUs()).toBe(6_000_000);
    runner.poll(6_000_000);
    expect(log).toEqual(['a timed-out  @6000000']);
  });

  test('while it is still out nothing more can be asked, but sleeps are slept and everything ends', () => {
    const { runner, transport, start, log } = makeRun();
    start('a', ask(1));
    runner.poll(6_000_000);
    start(
      'b',
      (function* both(): Procedure<string> {
        yield* sleep(1000);
        return `${(yield* controlIn('standard-device', 6, 2, 0, 1)).status} after a nap`;
      })(),
      7_000_000,
    );
    expect(log).toHaveLength(1);
    runner.poll(7_001_000);
    expect(log[1]).toBe('b timed-out after a nap @7001000');
    expect(transport.requests).toHaveLength(1);
  });

  test('its late answer is not taken for that of the next request', () => {
    const { runner, transport, start, log } = makeRun();
    start('a', ask(1));
    runner.poll(6_000_000);
    transport.answer('completed', 6_500_000);
    expect(log).toHaveLength(1);
    start('b', ask(2), 7_000_000);
    expect(transport.pendingRequest).toMatchObject({ value: 2 });
    transport.answer('stall', 7_000_001);
    expect(log[1]).toBe('b stall  @7000001');
  });
});

describe('unplug', () => {
  test('the request that is out, and all later ones, are answered with "gone"', () => {
    const { transport, start, log } = makeRun();
    start(
      'a',
      (function* twice(): Procedure<string> {
        const first = yield* clearHalt(0x02);
        return `${first} ${yield* clearHalt(0x02)}`;
      })(),
    );
    start('b', ask(2));
    transport.unplug(50);
    expect(log).toEqual(['a gone gone @50', 'b gone  @50']);
    expect(transport.requests).toHaveLength(1);
    start('c', ask(3), 60);
    expect(log[2]).toBe('c gone  @60');
  });

  test('an answer that comes after it is ignored', () => {
    const { transport, start, log } = makeRun();
    start(
      'a',
      (function* then(): Procedure<string> {
        const { status } = yield* controlIn('standard-device', 6, 1, 0, 1);
        yield* sleep(1000);
        return status;
      })(),
    );
    transport.unplug(50);
    transport.answer('completed', 60);
    expect(log).toEqual([]);
  });

  test('a sleep goes on: what waits for transfers to come back has to wait for that', () => {
    const { runner, transport, start, log } = makeRun();
    start(
      'a',
      (function* nap(): Procedure<string> {
        yield* sleep(3000);
        return 'awake';
      })(),
    );
    transport.unplug(50);
    expect(log).toEqual([]);
    runner.poll(3000);
    expect(log).toEqual(['a awake @3000']);
  });

  test('a request that was given up before it does not stand in the way', () => {
    const { runner, transport, start, log } = makeRun();
    start('a', ask(1));
    runner.poll(6_000_000);
    transport.unplug(6_500_000);
    start('b', ask(2), 7_000_000);
    expect(log).toEqual(['a timed-out  @6000000', 'b gone  @7000000']);
  });
});
