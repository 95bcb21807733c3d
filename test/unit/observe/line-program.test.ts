import { expect, test } from 'vitest';
import { parseDriverInformation } from '../../../src/observe/driver-information.ts';
import {
  LineSplitter,
  type ProgramEnd,
  runProgram,
  startLineProgram,
} from '../../../src/observe/line-program.ts';

/** A program of this machine, whatever it is. */
const node = process.execPath;

test('lines are handed on whole, wherever they were cut', () => {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  for (const piece of ['one\ntw', 'o\n\nthr', 'ee']) splitter.push(piece);
  expect(lines).toEqual(['one', 'two', '']);
  splitter.finish();
  expect(lines).toEqual(['one', 'two', '', 'three']);
});

test('a program speaks in lines, takes lines, and its words are English', async () => {
  const { lines, exitCode } = await runProgram(
    (name, programArguments, listener) => {
      const program = startLineProgram(name, programArguments, listener);
      program.write('question');
      return program;
    },
    node,
    [
      '-e',
      'process.stdin.once("data", (text) => { console.log(process.env.LC_ALL + " " + text); process.exit(3); })',
    ],
    10_000,
  );
  expect(lines).toEqual(['C question', '']);
  expect(exitCode).toBe(3);
});

test('its end comes after its last words, with the last complaint', async () => {
  const heard: string[] = [];
  const end = await new Promise<ProgramEnd>((resolve) => {
    startLineProgram(node, ['-e', 'console.log("a"); console.error("b\\nc"); process.stdout.write("d")'], {
      handleLine: (line) => heard.push(line),
      handleErrorLine: (line) => heard.push(line),
      handleEnd: resolve,
    });
  });
  expect(heard.sort()).toEqual(['a', 'b', 'c', 'd']);
  expect(end).toEqual({ isMissing: false, exitCode: 0, lastError: 'c' });
});

test('a program that is not there is missing', async () => {
  const { isMissing } = await runProgram(startLineProgram, 'queuescope-no-such-program', [], 10_000);
  expect(isMissing).toBe(true);
});

test('one that does not end in time is ended', async () => {
  const begin = performance.now();
  const { exitCode } = await runProgram(startLineProgram, node, ['-e', 'setInterval(() => {}, 1000)'], 300);
  expect(exitCode).toBeNull();
  expect(performance.now() - begin).toBeLessThan(5000);
});

test('what ethtool says of a driver; what it does not know is left out', () => {
  // ethtool 6.1 on a USB modem.
  const lines = [
    'driver: cdc_ncm',
    'version: 6.19.0',
    'firmware-version: CDC NCM (NO ZLP)',
    'expansion-rom-version: ',
    'bus-info: usb-0000:00:14.0-1',
  ];
  expect(parseDriverInformation(lines)).toEqual({
    driver: 'cdc_ncm',
    version: '6.19.0',
    firmwareVersion: 'CDC NCM (NO ZLP)',
  });
  expect(parseDriverInformation(['driver: r8152', 'firmware-version: N/A', 'version: '])).toEqual({
    driver: 'r8152',
    version: undefined,
    firmwareVersion: undefined,
  });
});
