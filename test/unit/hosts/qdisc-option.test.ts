import { expect, test } from 'vitest';
import { qdiscOption } from '../../../src/hosts/cli/run-options.ts';

test.each([
  ['pfifo_fast', { kind: 'pfifo_fast' }],
  ['pfifo', { kind: 'pfifo' }],
  ['fq_codel', { kind: 'fq_codel' }],
  [
    ' fq_codel target 10ms interval 0.2s limit 300 flows 64 quantum 300 noecn ',
    {
      kind: 'fq_codel',
      targetUs: 10_000,
      intervalUs: 200_000,
      limitPackets: 300,
      flows: 64,
      quantumBytes: 300,
      ecn: false,
    },
  ],
  ['fq_codel target 750 ecn', { kind: 'fq_codel', targetUs: 750, ecn: true }],
])('"%s"', (text, expected) => {
  expect(qdiscOption(text)).toEqual(expected);
});

test.each([
  ['cake', /one of pfifo_fast, fq_codel, pfifo/],
  ['', /one of/],
  ['pfifo limit 3', /pfifo has no options/],
  ['fq_codel ce_threshold 1ms', /no option "ce_threshold"/],
  ['fq_codel target soon', /targetUs/],
  ['fq_codel limit', /limitPackets/],
  ['fq_codel flows 0', /flows/],
  ['fq_codel limit 20000', /limitPackets/],
])('"%s" is refused', (text, reason) => {
  expect(() => qdiscOption(text)).toThrow(reason);
});
