import { beforeEach, describe, expect, test } from 'vitest';
import { parseRootQdisc, QdiscMonitor } from '../../../src/observe/qdisc-monitor.ts';
import { FakePrograms } from './fake-programs.ts';

const intervalUs = 50_000;
/** As `tc -s -j qdisc show` of iproute2 6.1 prints it. */
const answer = (backlog: number, kind = 'pfifo_fast'): string =>
  `[{"kind":"${kind}","handle":"0:","root":true,"refcnt":2,"options":{"bands":3},"bytes":3172462,"packets":33883,` +
  `"drops":4,"overlimits":0,"requeues":1,"backlog":${backlog},"qlen":${backlog / 1514}}]`;

let programs: FakePrograms;
let nowUs: number;
let kinds: string[];
let failures: { message: string; remedy: string | undefined }[];
let monitor: QdiscMonitor;

beforeEach(() => {
  programs = new FakePrograms();
  nowUs = 1e9;
  kinds = [];
  failures = [];
  monitor = new QdiscMonitor({
    netdev: 'eth0',
    start: programs.start,
    run: (action) => action(nowUs),
    intervalUs,
    handleKind: (kind) => kinds.push(kind),
    handleFailure: (message, remedy) => failures.push({ message, remedy }),
  });
});

function ask(afterUs = intervalUs): void {
  nowUs += afterUs;
  monitor.request(nowUs);
}

test('one tc answers all questions', () => {
  ask();
  const tc = programs.newest('tc');
  expect(tc.written).toEqual(['qdisc show dev eth0']);
  tc.say(answer(15_140));
  expect(monitor.latest).toEqual({
    kind: 'pfifo_fast',
    backlogBytes: 15_140,
    backlogPackets: 10,
    droppedPackets: 4,
    markedPackets: Number.NaN,
    flows: Number.NaN,
    requeues: 1,
  });
  ask();
  tc.say(answer(0));
  expect(monitor.latest?.backlogBytes).toBe(0);
  expect(programs.started).toHaveLength(1);
  expect(kinds).toEqual(['pfifo_fast']);
});

test('it is not asked more often than it is to be, nor before it has answered', () => {
  ask();
  ask();
  const tc = programs.newest('tc');
  expect(tc.written).toHaveLength(1);
  tc.say(answer(0));
  ask(1);
  expect(tc.written).toHaveLength(2);
  tc.say(answer(0));
  ask(intervalUs / 2);
  expect(tc.written).toHaveLength(2);
});

test('a long answer, of many queues, is asked for less often', () => {
  ask();
  const tc = programs.newest('tc');
  const child = ',{"kind":"fq_codel","parent":"8001:1","backlog":0,"qlen":0}';
  tc.say(`${answer(3028, 'mq').slice(0, -1)}${child.repeat(300)}]`);
  expect(monitor.latest).toMatchObject({ kind: 'mq', backlogBytes: 3028 });
  for (let i = 0; i < 4; i++) ask();
  expect(tc.written).toHaveLength(1);
  ask();
  expect(tc.written).toHaveLength(2);
});

describe('no answer', () => {
  test('because there is no tc: said once, with what to install', () => {
    ask();
    programs.newest('tc').end({ isMissing: true });
    expect(failures).toMatchObject([{ remedy: expect.stringContaining('iproute2') as string }]);
    ask();
    expect(programs.started).toHaveLength(1);
    expect(monitor.latest).toBeUndefined();
  });

  test('because this tc keeps its answers until it ends', () => {
    for (let i = 0; i < 5; i++) ask(2_000_000);
    expect(failures).toHaveLength(1);
    expect(programs.newest('tc').isStopped).toBe(true);
  });

  test('for a moment only is forgotten', () => {
    ask();
    ask(2_000_000);
    ask(2_000_000);
    programs.newest('tc').say(answer(1514));
    for (let i = 0; i < 3; i++) {
      ask(2_000_000);
      programs.newest('tc').say(answer(1514));
    }
    expect(failures).toEqual([]);
    expect(monitor.latest?.backlogBytes).toBe(1514);
  });
});

test('without a root qdisc nothing is known, and that is an answer', () => {
  ask();
  programs.newest('tc').say('[{"kind":"clsact","handle":"ffff:","parent":"ffff:fff1","backlog":0}]');
  expect(monitor.latest).toBeUndefined();
  for (let i = 0; i < 4; i++) {
    ask(2_000_000);
    programs.newest('tc').say('[]');
  }
  expect(failures).toEqual([]);
});

test.each([
  '',
  'Cannot find device "eth7"',
  '{"kind":"mq","root":true}',
  '[null, 3]',
  '[{"root":true}]',
  '[{',
])('no qdisc in %j', (line) => {
  expect(parseRootQdisc(line)).toBeUndefined();
});

test('fq_codel’s marks and flows are read too', () => {
  const line =
    '[{"kind":"fq_codel","handle":"8001:","root":true,"refcnt":2,"options":{"limit":10240},"drops":3,' +
    '"requeues":0,"backlog":3028,"qlen":2,"drop_overlimit":0,"new_flow_count":9,"ecn_mark":7,' +
    '"new_flows_len":1,"old_flows_len":2}]';
  expect(parseRootQdisc(line)).toMatchObject({
    kind: 'fq_codel',
    droppedPackets: 3,
    markedPackets: 7,
    flows: 3,
  });
});
