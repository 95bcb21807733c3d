import { expect, test } from 'vitest';
import { parsePingLine } from '../../../src/observe/ping-output.ts';

// Lines as iputils 20221126 printed them.
test.each([
  [
    '[1796060530.689127] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.450 ms',
    { kind: 'reply', sequence: 1, stampUs: 1_796_060_530_689_127, rttUs: 450 },
  ],
  [
    '[1796060530.000042] 64 bytes from 192.0.2.1: icmp_seq=65535 ttl=64 time=447 ms',
    { kind: 'reply', sequence: 65_535, stampUs: 1_796_060_530_000_042, rttUs: 447_000 },
  ],
  [
    '[1796060533.250817] no answer yet for icmp_seq=17',
    { kind: 'outstanding', sequence: 17, stampUs: 1_796_060_533_250_817 },
  ],
  [
    '[1796060533.250817] From 10.8.0.1 icmp_seq=2 Destination Host Unreachable',
    { kind: 'unreachable', sequence: 2, reason: 'Destination Host Unreachable' },
  ],
  [
    'From gateway (10.8.0.1) icmp_seq=3 Time to live exceeded',
    { kind: 'unreachable', sequence: 3, reason: 'Time to live exceeded' },
  ],
])('%s', (line, parsed) => {
  expect(parsePingLine(line)).toEqual(parsed);
});

test.each([
  'PING 192.0.2.1 (192.0.2.1) from 192.0.2.2 eth0: 56(84) bytes of data.',
  '[1796060530.689127] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.450 ms (DUP!)',
  '[1796060530.689127] 16 bytes from 192.0.2.1: icmp_seq=1 ttl=64',
  '',
  '--- 192.0.2.1 ping statistics ---',
  '10 packets transmitted, 10 received, 0% packet loss, time 1860ms',
])('says nothing of a probe: %j', (line) => {
  expect(parsePingLine(line)).toBeUndefined();
});
