import { expect, test } from 'vitest';
import { createOutput } from '../../../../src/hosts/cli/output.ts';

function captured(): { readonly output: ReturnType<typeof createOutput>; stdout: string; stderr: string } {
  const streams = { stdout: '', stderr: '' };
  const output = createOutput({
    stdout: { write: (text) => (streams.stdout += text) },
    stderr: { write: (text) => (streams.stderr += text) },
  });
  return Object.assign(streams, { output });
}

test('a name cannot command the terminal: neither in a line nor in a note', () => {
  const streams = captured();
  streams.output.line('modem \u001b[2J\u009b31m\r\u0007\u202eevil');
  streams.output.note('modem \u001b]0;title\u0007');
  expect(streams.stdout).toBe('modem \ufffd[2J\ufffd31m\ufffd\ufffd\ufffdevil\n');
  expect(streams.stderr).toBe('modem \ufffd]0;title\ufffd\n');
});

test('lines, tabs and letters of every language stay', () => {
  const streams = captured();
  streams.output.line('a\tb\nc – für 调制解调器 مودم');
  expect(streams.stdout).toBe('a\tb\nc – für 调制解调器 مودم\n');
});

test('a document is printed as it is', () => {
  const streams = captured();
  streams.output.document('a,b\r\n1,2\r\n');
  expect(streams.stdout).toBe('a,b\r\n1,2\r\n\n');
});
