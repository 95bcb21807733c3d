import { closeSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ReadyFiles } from '../../../src/linux/ready-files.ts';
import {
  errorNumbers,
  loadSystemCalls,
  pollEvents,
  type SystemCalls,
} from '../../../src/linux/system-calls.ts';

const badFile = 9;
const one = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0);

/** The real ones, on this machine. */
describe.runIf(process.platform === 'linux')('system calls', () => {
  let calls: SystemCalls;
  let folder: string;

  beforeEach(() => {
    calls = loadSystemCalls();
    folder = mkdtempSync(join(tmpdir(), 'system-calls-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  test('open, read, write and close work on files, and say what is wrong by its number', () => {
    const path = join(folder, 'file');
    writeFileSync(path, 'some text');
    const fd = calls.open(path);
    const buffer = new Uint8Array(4);
    expect(calls.read(fd, buffer, 4)).toBe(4);
    expect(new TextDecoder().decode(buffer)).toBe('some');
    expect(calls.write(fd, buffer, 4)).toBe(4);
    calls.close(fd);
    expect(readFileSync(path, 'utf8')).toBe('somesomet');
    expect(calls.read(fd, buffer, 4)).toBe(-badFile);
    expect(calls.open(join(folder, 'missing'))).toBe(-errorNumbers.noEntry);
  });

  test('an ioctl that fails says so here and on another thread', async () => {
    expect(calls.ioctl(-1, 0x5514, undefined)).toBe(-badFile);
    expect(calls.ioctlNumber(-1, 0x5514, 0x7fff_ffff_ffff)).toBe(-badFile);
    const argument = new Uint8Array(4);
    expect(await new Promise((done) => calls.ioctlBehind(-1, 0x80045510, argument, done))).toBe(-badFile);
    expect(await new Promise((done) => calls.ioctlBehind(-1, 0x5514, undefined, done))).toBe(-badFile);
  });

  test('an address stays what it was, also of memory that is small, and counts bytes', () => {
    const memory = new Uint8Array(8);
    const address = calls.addressOf(memory);
    const litter = Array.from({ length: 20_000 }, () => new Uint8Array(8));
    expect(litter).toHaveLength(20_000);
    expect(calls.addressOf(memory)).toBe(address);
    expect(calls.addressOf(memory.subarray(3))).toBe(address + 3);
  });

  test('files that are ready are told from those that are not, and a wait ends in time', () => {
    const [quiet, ready] = [calls.eventFile(), calls.eventFile()];
    calls.write(ready, one, 8);
    const files = new Int32Array([quiet, pollEvents.in, ready, pollEvents.in]);
    const bytes = new Uint8Array(files.buffer);
    const timeout = new Uint8Array(16);
    expect(calls.poll(bytes, 2, timeout)).toBe(1);
    expect(files[1]).toBe(pollEvents.in);
    expect(files[3]).toBe(pollEvents.in | (pollEvents.in << 16));
    calls.read(ready, new Uint8Array(8), 8);
    new DataView(timeout.buffer).setUint32(8, 20_000_000, true);
    const began = performance.now();
    expect(calls.poll(bytes, 2, timeout)).toBe(0);
    expect(performance.now() - began).toBeGreaterThan(15);
    closeSync(quiet);
    closeSync(ready);
  });

  test('ReadyFiles sees what happens to real files, behind and briefly, and leaves none open', async () => {
    const nowUs = (): number => performance.now() * 1000;
    const files = new ReadyFiles(calls, nowUs);
    const fd = calls.eventFile();
    let seen = 0;
    const watch = files.watch(fd, pollEvents.in, () => {
      seen++;
      calls.read(fd, new Uint8Array(8), 8);
    });
    watch.arm();
    calls.write(fd, one, 8);
    for (let i = 0; seen < 1 && i < 400; i++) await sleep(5);
    expect(seen).toBe(1);

    const attendance = files.attend();
    expect(attendance.waitBriefly(1000)).toBe(false);
    calls.write(fd, one, 8);
    expect(attendance.waitBriefly(1_000_000)).toBe(true);
    expect(seen).toBe(2);
    attendance.close();
    calls.write(fd, one, 8);
    for (let i = 0; seen < 3 && i < 400; i++) await sleep(5);
    expect(seen).toBe(3);

    // While the thread waits.
    watch.close();
    for (let i = 0; calls.read(fd, new Uint8Array(8), 8) !== -badFile && i < 400; i++) await sleep(5);
    expect(calls.read(fd, new Uint8Array(8), 8)).toBe(-badFile);
  });
});
