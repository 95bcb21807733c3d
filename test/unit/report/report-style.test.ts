import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { reportStyle } from '../../../src/report/report-style.ts';

/** One colour a quantity everywhere: those of the window's token file are the ones that were checked. */

const tokens = readFileSync(new URL('../../../renderer/styles/tokens.css', import.meta.url), 'utf8');

test('quantities have the same colours in a report as in the window', () => {
  const ofWindow = [...tokens.matchAll(/--q-([a-z-]+): light-dark\((#\w+), (#\w+)\)/g)];
  expect(ofWindow.length).toBeGreaterThan(10);
  for (const [, name = '', light = '', dark = ''] of ofWindow) {
    const ofReport = [...reportStyle.matchAll(new RegExp(`--${name}: (#\\w+);`, 'g'))].map(
      (match) => match[1],
    );
    expect([name, ...ofReport]).toEqual([name, light, dark]);
  }
});
