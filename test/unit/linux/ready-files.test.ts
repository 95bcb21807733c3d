import { beforeEach, describe, expect, test } from 'vitest';
import { type Attendance, type FileWatch, ReadyFiles } from '../../../src/linux/ready-files.ts';
import { pollEvents } from '../../../src/linux/system-calls.ts';
import { FakeUsbfs } from '../transports/fake-usbfs.ts';

/** Files on a kernel of our own: what a thread does happens with `turn` and `expire`. Event files stand for any. */
let kernel: FakeUsbfs;
let files: ReadyFiles;

beforeEach(() => {
  kernel = new FakeUsbfs({ interfaces: {} });
  files = new ReadyFiles(kernel, () => kernel.nowUs);
});

interface Watched {
  readonly fd: number;
  readonly watch: FileWatch;
  seen: number;
  /** What is done each time that it is ready; at first: it is read. */
  whenReady: () => void;
}

function watched(): Watched {
  const fd = kernel.eventFile();
  const each: Watched = {
    fd,
    watch: files.watch(fd, pollEvents.in, () => {
      each.seen++;
      each.whenReady();
    }),
    seen: 0,
    whenReady: () => kernel.read(fd, new Uint8Array(8), 8),
  };
  return each;
}

function signal({ fd }: Watched): void {
  kernel.write(fd, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0), 8);
}

describe('behind', () => {
  test('nothing is waited for before a watch is armed, nor once it is disarmed', () => {
    const file = watched();
    signal(file);
    kernel.turn();
    expect([file.seen, kernel.waiting]).toEqual([0, 0]);
    file.watch.arm();
    kernel.turn();
    expect(file.seen).toBe(1);
    file.watch.disarm();
    signal(file);
    kernel.turn();
    kernel.turn();
    expect(file.seen).toBe(1);
    // Nobody wants anything: no thread goes on waiting.
    expect(kernel.waiting).toBe(0);
  });

  test('a file that is ready again is seen again, for ever', () => {
    const file = watched();
    file.watch.arm();
    for (let i = 1; i <= 5; i++) {
      signal(file);
      kernel.turn();
      expect(file.seen).toBe(i);
      expect(kernel.waiting).toBe(1);
    }
  });

  test('one that is armed while a thread waits for others is seen, without waiting for its limit', () => {
    const [first, second] = [watched(), watched()];
    first.watch.arm();
    second.watch.arm();
    signal(second);
    kernel.turn();
    kernel.turn();
    expect([first.seen, second.seen]).toEqual([0, 1]);
    expect(kernel.waiting).toBe(1);
  });

  test('the thread that has waited long enough is followed by another', () => {
    const file = watched();
    file.watch.arm();
    kernel.expire();
    expect([file.seen, kernel.waiting]).toEqual([0, 1]);
    signal(file);
    kernel.turn();
    expect(file.seen).toBe(1);
  });

  test('what one of them does to the other while both are ready, holds', () => {
    const [first, second] = [watched(), watched()];
    first.watch.arm();
    second.watch.arm();
    first.whenReady = () => {
      kernel.read(first.fd, new Uint8Array(8), 8);
      second.watch.close();
    };
    signal(first);
    signal(second);
    kernel.turn();
    kernel.turn();
    expect([first.seen, second.seen]).toEqual([1, 0]);
    expect(kernel.violations).toEqual([]);
  });
});

describe('closing', () => {
  test('a file that no thread waits for is closed at once', () => {
    const file = watched();
    file.watch.close();
    file.watch.close();
    expect(kernel.openEvents).toBe(0);
  });

  test('a file that a thread waits for is closed once it does not any more, and all is given back', () => {
    const file = watched();
    file.watch.arm();
    signal(file);
    file.watch.close();
    expect(kernel.openEvents).toBe(2);
    kernel.turn();
    expect(file.seen).toBe(0);
    expect(kernel.openEvents).toBe(0);
    expect(kernel.waiting).toBe(0);
    expect(kernel.violations).toEqual([]);
  });

  test('without an event file to wake the thread by, closing waits for its limit', () => {
    const file = watched();
    kernel.eventError = 24;
    file.watch.arm();
    file.watch.close();
    kernel.turn();
    expect(kernel.openEvents).toBe(1);
    kernel.expire();
    expect(kernel.openEvents).toBe(0);
    expect(kernel.violations).toEqual([]);
  });

  test('a file of the same number that is opened next is another one', () => {
    const first = watched();
    first.watch.arm();
    first.watch.close();
    kernel.turn();
    const second = watched();
    expect(second.fd).toBe(first.fd);
    second.watch.arm();
    signal(second);
    kernel.turn();
    expect([first.seen, second.seen]).toEqual([0, 1]);
  });
});

describe('briefly', () => {
  let attendance: Attendance;

  beforeEach(() => {
    attendance = files.attend();
  });

  test('the caller deals with what is ready, and otherwise waits as long as it says', () => {
    const file = watched();
    file.watch.arm();
    expect(attendance.waitBriefly(300)).toBe(false);
    expect(kernel.nowUs).toBe(300);
    signal(file);
    expect(attendance.waitBriefly(300)).toBe(true);
    expect(file.seen).toBe(1);
    expect(kernel.nowUs).toBe(300);
    expect(attendance.lastReadyUs).toBe(300);
  });

  test('a wait of more than a second is told in seconds, too', () => {
    watched().watch.arm();
    attendance.waitBriefly(2_500_000);
    expect(kernel.nowUs).toBe(2_500_000);
  });

  test('no thread is started for what is armed meanwhile, until the caller goes', () => {
    attendance.waitBriefly(0);
    const file = watched();
    file.watch.arm();
    expect(kernel.waiting).toBe(0);
    attendance.waitBehind();
    expect(kernel.waiting).toBe(1);
    signal(file);
    kernel.turn();
    expect(file.seen).toBe(1);
  });

  test('a thread that waited already is not followed by another', () => {
    const file = watched();
    file.watch.arm();
    attendance.waitBriefly(10);
    signal(file);
    kernel.turn();
    // The caller has to come back for it.
    expect([file.seen, kernel.waiting]).toEqual([0, 0]);
    attendance.waitBriefly(10);
    expect(file.seen).toBe(1);
  });

  test('of two callers the last one to go leaves the thread behind', () => {
    const other = files.attend();
    const file = watched();
    attendance.waitBriefly(0);
    other.waitBriefly(0);
    file.watch.arm();
    other.close();
    expect(kernel.waiting).toBe(0);
    attendance.close();
    expect(kernel.waiting).toBe(1);
  });

  test('none waits longer than another can spare', () => {
    watched().watch.arm();
    const other = files.attend();
    other.dueAtUs = 200;
    attendance.waitBriefly(1000);
    expect(kernel.nowUs).toBe(200);
    attendance.waitBriefly(1000);
    expect(kernel.nowUs).toBe(200);
    other.dueAtUs = Number.POSITIVE_INFINITY;
    attendance.waitBriefly(1000);
    expect(kernel.nowUs).toBe(1200);
    other.dueAtUs = 0;
    other.close();
    attendance.waitBriefly(1000);
    expect(kernel.nowUs).toBe(2200);
  });

  test('its own time does not shorten its wait', () => {
    watched().watch.arm();
    files.attend();
    attendance.dueAtUs = 0;
    attendance.waitBriefly(1000);
    expect(kernel.nowUs).toBe(1000);
  });
});
