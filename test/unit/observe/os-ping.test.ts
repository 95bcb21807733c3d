import { beforeEach, describe, expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import { OsPing, type OsPingSettings, type PingTrouble } from '../../../src/observe/os-ping.ts';
import type { PingResult } from '../../../src/observe/ping-tracker.ts';
import { FakePrograms } from './fake-programs.ts';

const settings: OsPingSettings = {
  enabled: true,
  intervalUs: 50_000,
  tos: 0x10,
  payloadBytes: 56,
  timeoutUs: 1_000_000,
};

let programs: FakePrograms;
let nowUs: number;
let results: PingResult[];
let troubles: (PingTrouble | undefined)[];
let ping: OsPing;

beforeEach(() => {
  programs = new FakePrograms();
  nowUs = 0;
  results = [];
  troubles = [];
  ping = new OsPing(settings, {
    netdev: 'wwan0',
    start: programs.start,
    run: (action) => action(nowUs),
    wallClockUs: () => nowUs,
    handleResult: (result) => results.push(result),
    handleTrouble: (trouble) => troubles.push(trouble),
  });
});

/** Lets time pass, in steps that a loop would make. */
function pass(us: number): void {
  const endUs = nowUs + us;
  while (ping.pollAtUs() <= endUs) {
    nowUs = Math.max(nowUs, ping.pollAtUs());
    ping.poll(nowUs);
  }
  nowUs = endUs;
}

const answer = (sequence: number): string =>
  `[${(nowUs / 1e6).toFixed(6)}] 64 bytes from 10.0.0.1: icmp_seq=${sequence} ttl=64 time=0.100 ms`;

test('nothing is started before there is a target', () => {
  pass(10_000_000);
  expect(programs.started).toEqual([]);
  expect(ping.pollAtUs()).toBe(neverUs);
});

test('one program pings out of the interface, with priority, and without looking up names', () => {
  ping.setTarget('10.0.0.1', nowUs);
  pass(1000);
  const program = programs.newest('ping');
  expect(program.arguments.at(-1)).toBe('10.0.0.1');
  expect(program.arguments).toEqual(expect.arrayContaining(['-n', '-D', '-O']));
  expect(['-I', '-i', '-Q', '-s'].map((name) => program.option(name))).toEqual(['wwan0', '0.05', '16', '56']);
  program.say('PING 10.0.0.1 (10.0.0.1) from 10.0.0.2 wwan0: 56(84) bytes of data.', answer(1));
  expect(results).toEqual([{ sequence: 0, sentAtUs: 900, rttUs: 100 }]);
});

test('a payload without room for the time would have no round trip', () => {
  ping.configure({ ...settings, payloadBytes: 0 }, nowUs);
  ping.setTarget('10.0.0.1', nowUs);
  pass(1000);
  expect(programs.newest('ping').option('-s')).toBe('16');
});

test('other settings or another target mean another program; the same ones do not', () => {
  ping.setTarget('10.0.0.1', nowUs);
  pass(1000);
  programs.newest('ping').say(answer(1));
  ping.configure({ ...settings }, nowUs);
  ping.setTarget('10.0.0.1', nowUs);
  pass(1000);
  expect(programs.started).toHaveLength(1);
  ping.configure({ ...settings, intervalUs: 200_000 }, nowUs);
  pass(1000);
  expect(programs.started.map(({ isStopped }) => isStopped)).toEqual([true, false]);
  programs.newest('ping').say(answer(1));
  expect(results.map(({ sequence }) => sequence)).toEqual([0, 1]);
  ping.configure({ ...settings, enabled: false }, nowUs);
  pass(60_000_000);
  expect(programs.started.map(({ isStopped }) => isStopped)).toEqual([true, true]);
});

describe('a program that ends', () => {
  beforeEach(() => {
    ping.setTarget('10.0.0.1', nowUs);
    pass(1000);
  });

  test('is started again, each time later, until one is answered', () => {
    const startedAtUs: number[] = [];
    for (let i = 0; i < 8; i++) {
      startedAtUs.push(nowUs);
      programs.newest('ping').end({ lastError: 'ping: SO_BINDTODEVICE wwan0: No such device' });
      nowUs = ping.pollAtUs();
      pass(0);
    }
    const waits = startedAtUs.map((atUs, i) => ((startedAtUs[i + 1] ?? nowUs) - atUs) / 1e6);
    expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(troubles.at(-1)?.message).toContain('SO_BINDTODEVICE wwan0: No such device');
    programs.newest('ping').say(answer(1));
    expect(troubles.at(-1)).toBeUndefined();
    programs.newest('ping').end();
    expect(ping.pollAtUs() - nowUs).toBe(1_000_000);
  });

  test('for want of permission: what would help', () => {
    programs.newest('ping').end({ lastError: 'ping: => missing cap_net_raw+p capability or setuid?' });
    expect(troubles.at(-1)?.remedy).toMatch(/^sudo setcap /m);
  });

  test('because it may not be so fast is started again at once, slower', () => {
    programs.newest('ping').complain('ping: cannot flood; minimal interval allowed for user is 200ms');
    programs.newest('ping').end({
      exitCode: 2,
      lastError: 'ping: cannot flood; minimal interval allowed for user is 200ms',
    });
    pass(1000);
    expect(programs.newest('ping').option('-i')).toBe('0.2');
    expect(troubles).toEqual([]);
  });

  test.each([
    ['that is not there', { isMissing: true }, [], 'missing'],
    ['of BusyBox', { lastError: '-q Quiet' }, ["ping: invalid option -- 'Q'"], 'not that of iputils'],
  ])('%s is not tried again', (_which, end, complaints, words) => {
    for (const line of complaints) programs.newest('ping').complain(line);
    programs.newest('ping').end(end);
    expect(troubles.at(-1)?.message).toContain(words);
    expect(troubles.at(-1)?.remedy).toMatch(/^sudo apt-get install iputils-ping$/m);
    pass(600_000_000);
    expect(programs.started).toHaveLength(1);
  });

  test('after it was closed is nobody’s concern', () => {
    const program = programs.newest('ping');
    ping.close();
    program.end();
    expect(program.isStopped).toBe(true);
    expect(troubles).toEqual([]);
    expect(ping.pollAtUs()).toBe(neverUs);
  });
});
