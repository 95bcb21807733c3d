import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { monotonicClock } from '../../src/engine/monotonic-clock.ts';
import { ReadyFiles } from '../../src/linux/ready-files.ts';
import { loadSystemCalls, type SystemCalls } from '../../src/linux/system-calls.ts';
import { TapDevice } from '../../src/tap/tap-device.ts';

/** What the host leaves to whom reads its TAP interface: this kernel's, and those of kernels that know less. */

const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/dev/net/tun');
const name = 'qstapdev0';
const invalid = -22;
const requests = {
  getFeatures: 0x800454cf,
  setOffload: 0x400454d0,
  headerSize: 0x400454d8,
  littleEndian: 0x400454dc,
};
const udpOffloads = 0x60;

let tap: TapDevice | undefined;

afterEach(() => {
  tap?.close();
  tap = undefined;
});

/** This kernel, without what is refused. */
function open(
  header: 'none' | 'virtio',
  refuses: (request: number, argument: number) => boolean = () => false,
): void {
  const calls: SystemCalls = loadSystemCalls();
  const lesser: SystemCalls = {
    ...calls,
    ioctl: (fd, request, argument) => (refuses(request, 0) ? invalid : calls.ioctl(fd, request, argument)),
    ioctlNumber: (fd, request, argument) =>
      refuses(request, argument) ? invalid : calls.ioctlNumber(fd, request, argument),
  };
  tap = TapDevice.open(
    name,
    { calls: lesser, files: new ReadyFiles(lesser, () => monotonicClock.nowUs()) },
    header,
  );
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' });
}

/** The host comes up and asks for its neighbours: where in what is read here its first frame begins. */
function startOfFirstFrame(): number {
  ip('link', 'set', name, 'up');
  const buffer = new Uint8Array(70_000);
  const endMs = Date.now() + 5000;
  while (Date.now() < endMs) {
    // It goes to a group of IPv6.
    if ((tap?.read(buffer) ?? 0) > 0) {
      return [0, 10].find((at) => buffer[at] === 0x33 && buffer[at + 1] === 0x33) ?? -1;
    }
  }
  return -1;
}

describe.runIf(isRoot)('a TAP interface', () => {
  test('without a header, unless it is asked for', () => {
    open('none');
    expect(tap?.header).toBe('none');
    expect(startOfFirstFrame()).toBe(0);
  });

  test('with a header where the kernel has one', () => {
    open('virtio');
    expect(tap?.header).toBe('virtio');
    expect(startOfFirstFrame()).toBe(10);
  });

  test.each<[string, (request: number) => boolean]>([
    ['of no header', (request) => request === requests.getFeatures],
    ['of no other length of it', (request) => request === requests.headerSize],
    ['of no order of its bytes', (request) => request === requests.littleEndian],
    ['of nothing that can be left to others', (request) => request === requests.setOffload],
  ])('a kernel that knows %s: without', (_name, refuses) => {
    open('virtio', refuses);
    expect(tap?.header).toBe('none');
    expect(startOfFirstFrame()).toBe(0);
  });

  test('a kernel that cuts UDP itself: with a header all the same', () => {
    open('virtio', (request, argument) => request === requests.setOffload && (argument & udpOffloads) !== 0);
    expect(tap?.header).toBe('virtio');
  });

  test('an interface that stays is left as others expect it', () => {
    ip('tuntap', 'add', 'dev', name, 'mode', 'tap');
    try {
      open('virtio');
      tap?.close();
      open('none');
      expect(startOfFirstFrame()).toBe(0);
    } finally {
      tap?.close();
      ip('tuntap', 'del', 'dev', name, 'mode', 'tap');
    }
  });
});
