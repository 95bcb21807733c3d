import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type EemBadPacket,
  eemCommands,
  readEemBundle,
  writeEemCommand,
  writeEemCrc,
  writeEemDataHeader,
  writeEemPadding,
} from '../../../src/wire/eem.ts';
import { bytesOf } from './bytes-of.ts';

function dataPacket(frame: Uint8Array, withCrc: boolean): Uint8Array {
  const bytes = new Uint8Array(frame.length + 6);
  writeEemDataHeader(bytes, 0, frame.length, withCrc);
  bytes.set(frame, 2);
  writeEemCrc(bytes, 2, frame.length, withCrc);
  return bytes;
}

function command(code: number, parameter: number, data = new Uint8Array(0)): Uint8Array {
  const bytes = new Uint8Array(2 + data.length);
  writeEemCommand(bytes, 0, code, parameter);
  bytes.set(data, 2);
  return bytes;
}

interface Read {
  result: string;
  frames: Uint8Array[];
  commands: [number, number, Uint8Array?][];
  bad: EemBadPacket[];
}

function read(...parts: readonly Uint8Array[]): Read {
  const bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
  const found: Read = { result: '', frames: [], commands: [], bad: [] };
  found.result = readEemBundle(bytes, bytes.length, {
    handleFrame: (from, offset, length) => found.frames.push(from.slice(offset, offset + length)),
    handleCommand: (code, parameter, from, offset) => {
      const isEcho = code === eemCommands.echo || code === eemCommands.echoResponse;
      found.commands.push(
        isEcho ? [code, parameter, from.slice(offset, offset + parameter)] : [code, parameter],
      );
    },
    handleBadPacket: (reason) => found.bad.push(reason),
  });
  return found;
}

describe('golden bytes (spec 9)', () => {
  test('a frame of 60 bytes without a CRC', () => {
    const frame = new Uint8Array(60).fill(7);
    const bytes = dataPacket(frame, false);
    expect(bytes.slice(0, 2)).toEqual(bytesOf('40 00'));
    expect(bytes.slice(62)).toEqual(bytesOf('DE AD BE EF'));
  });

  test('the same with a CRC', () => {
    const frame = new Uint8Array(60).fill(7);
    const bytes = dataPacket(frame, true);
    expect(bytes.slice(0, 2)).toEqual(bytesOf('40 40'));
    expect(new DataView(bytes.buffer).getUint32(62, true)).toBe(zlibCrc32(frame));
  });

  test('an echo response with two bytes, and an empty packet', () => {
    expect(command(eemCommands.echoResponse, 2, Uint8Array.of(5, 6))).toEqual(bytesOf('02 88 05 06'));
    const bytes = new Uint8Array(2).fill(9);
    writeEemPadding(bytes, 0);
    expect(bytes).toEqual(bytesOf('00 00'));
  });
});

test('bundles of frames, commands and padding are read in order', () => {
  const frame = fc.uint8Array({ minLength: 14, maxLength: 300 });
  const part = fc.oneof(
    fc.record({ kind: fc.constant('frame' as const), frame, withCrc: fc.boolean() }),
    fc.record({ kind: fc.constant('echo' as const), data: fc.uint8Array({ maxLength: 60 }) }),
    fc.record({
      kind: fc.constant('hint' as const),
      code: fc.integer({ min: 2, max: 7 }),
      parameter: fc.nat(2047),
    }),
    fc.record({ kind: fc.constant('padding' as const) }),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 10 }), (parts) => {
      const expected: Read = { result: 'ok', frames: [], commands: [], bad: [] };
      const bytes = parts.map((each) => {
        switch (each.kind) {
          case 'frame':
            expected.frames.push(each.frame);
            return dataPacket(each.frame, each.withCrc);
          case 'echo':
            expected.commands.push([0, each.data.length, each.data]);
            return command(0, each.data.length, each.data);
          case 'hint':
            expected.commands.push([each.code, each.parameter]);
            return command(each.code, each.parameter);
          case 'padding':
            return new Uint8Array(2);
        }
      });
      expect(read(...bytes)).toEqual(expected);
    }),
  );
});

describe('what is wrong is told, and what follows is read', () => {
  const frame = new Uint8Array(20).fill(3);
  const good = dataPacket(frame, true);

  test('a CRC that is not that of the frame', () => {
    const bad = dataPacket(frame, true);
    bad[5] = 9;
    expect(read(bad, good)).toMatchObject({ result: 'ok', frames: [frame], bad: ['bad-crc'] });
  });

  test('no CRC, and not the word for it', () => {
    const bad = dataPacket(frame, false);
    bad[bad.length - 1] = 0;
    expect(read(bad, good)).toMatchObject({ result: 'ok', frames: [frame], bad: ['bad-sentinel'] });
  });

  test('a frame that is too short to be one', () => {
    expect(read(dataPacket(new Uint8Array(13), true), good)).toMatchObject({
      frames: [frame],
      bad: ['runt'],
    });
    expect(read(bytesOf('01 00 ff'), good)).toMatchObject({ frames: [frame], bad: ['runt'] });
  });

  test('a command with the reserved bit', () => {
    expect(read(bytesOf('00 c0'), good)).toMatchObject({ frames: [frame], bad: ['reserved-command'] });
  });

  test.each([
    ['cut-header', '05'],
    ['overrun', '40 00 01 02'],
    ['overrun', '05 80 01 02 03 04'],
    ['overrun', '05 88 01'],
  ])('%s ends the bundle: %s', (result, hex) => {
    expect(read(good, bytesOf(hex))).toMatchObject({ result, frames: [frame] });
  });
});
