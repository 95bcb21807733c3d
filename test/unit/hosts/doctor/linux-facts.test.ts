import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LinuxProbe } from '../../../../src/hosts/doctor/linux-facts.ts';
import { readRecordingsFolder } from '../../../../src/hosts/doctor/read-machine.ts';
import type { StartProgram } from '../../../../src/observe/line-program.ts';
import { FakeNetdevs } from '../../observe/fake-netdevs.ts';
import { FakeSysfs } from '../../transports/fake-sysfs.ts';
import { modem } from './fake-machine.ts';

let system: FakeSysfs;
beforeEach(() => {
  system = new FakeSysfs();
});
afterEach(() => system.dispose());

/** Programs that say this on standard error and then end. */
function saying(answers: Readonly<Record<string, { lines?: string[]; error?: string }>>): StartProgram {
  return (_name, programArguments, listener) => {
    const { lines = [], error = '' } = answers[programArguments[0] ?? ''] ?? {};
    queueMicrotask(() => {
      for (const line of lines) listener.handleLine(line);
      listener.handleEnd({ isMissing: false, exitCode: error === '' ? 0 : 2, lastError: error });
    });
    return { write() {}, stop() {} };
  };
}

function probe(startProgram: StartProgram = saying({})): LinuxProbe {
  return new LinuxProbe({
    root: system.root,
    environment: { PATH: '/bin:/usr/bin' },
    userId: 1000,
    startProgram,
  });
}

test('an empty system: nothing is there, and nothing fails', async () => {
  expect(await probe().facts([])).toMatchObject({
    usbDevices: 0,
    hasUsbNodes: false,
    usbMemoryMegabytes: undefined,
    netdevs: [],
    programs: new Set(),
    ping: undefined,
    tun: { failureCode: 'ENOENT', mayMake: false, ownInterfaces: [] },
  });
});

test('a device: its node, who has it open, its sleep', async () => {
  system.addDevice('1-1', 4, new Uint8Array(18), { 'power/control': 'auto' });
  system.addProcess(77, 'adb', '/dev/bus/usb/001/004');
  system.write('sys/module/usbcore/parameters/usbfs_memory_mb', '16\n');
  const { usbNodes, usbDevices, hasUsbNodes, usbMemoryMegabytes, running } = await probe().facts([modem()]);
  expect(usbNodes.get('usb:1-1')).toEqual({
    path: '/dev/bus/usb/001/004',
    failureCode: undefined,
    holders: [{ pid: 77, command: 'adb' }],
    powerControl: 'auto',
  });
  expect({ usbDevices, hasUsbNodes, usbMemoryMegabytes }).toEqual({
    usbDevices: 1,
    hasUsbNodes: true,
    usbMemoryMegabytes: 16,
  });
  expect(running).toContain('adb');
});

test('a device without its node', async () => {
  system.addDevice('1-1', 4, new Uint8Array(18), { devnum: '5' });
  const { usbNodes } = await probe().facts([modem()]);
  expect(usbNodes.get('usb:1-1')).toMatchObject({ path: '/dev/bus/usb/001/005', failureCode: 'ENOENT' });
});

test('interfaces: limits, and the way out', async () => {
  const netdevs = new FakeNetdevs(system.root);
  netdevs.add('wwan0', { device: { path: 'usb1/1-1/1-1:1.0', driver: 'cdc_ncm', bus: 'usb' } });
  netdevs.add('veth0');
  netdevs.routes([['wwan0', '0101A8C0', 100]]);
  const { netdevs: found } = await probe().facts([]);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatchObject({
    description: { name: 'wwan0', bus: 'usb', bqlQueues: ['tx-0'] },
    hasDefaultRoute: true,
    limitsAreWritable: true,
  });
});

test('programs: found where they are, and ping is tried', async () => {
  for (const path of ['usr/bin/ping', 'usr/sbin/tc']) {
    system.write(path, '');
    chmodSync(join(system.root, path), 0o755);
  }
  system.write('usr/bin/ip', '');
  chmodSync(join(system.root, 'usr/bin/ip'), 0o644);
  system.write('proc/sys/net/ipv4/ping_group_range', '1\t0\n');
  const { programs, ping } = await probe(
    saying({
      '-V': { lines: ['ping from iputils 20240905'] },
      '-n': { error: 'ping: Operation not permitted' },
    }),
  ).facts([]);
  expect(programs).toEqual(new Set(['ping', 'tc']));
  expect(ping).toEqual({
    isIputils: true,
    complaint: 'ping: Operation not permitted',
    groupRange: '1 0',
  });
});

test('TAP: rights, and interfaces that belong to the user', async () => {
  system.write('dev/net/tun', '');
  system.write('proc/self/status', 'Name:\tnode\nCapEff:\t0000000000001000\n');
  for (const [name, flags, owner] of [
    ['qs0', '0x1002', '1000'],
    ['qs1', '0x1002', '1001'],
    ['tun0', '0x1001', '1000'],
  ]) {
    system.write(`sys/class/net/${name}/tun_flags`, `${flags}\n`);
    system.write(`sys/class/net/${name}/owner`, `${owner}\n`);
  }
  const { tun } = await probe().facts([]);
  expect(tun).toMatchObject({ failureCode: undefined, mayMake: true, ownInterfaces: ['qs0'] });
  system.write('proc/self/status', 'CapEff:\t0000000000000800\n');
  expect((await probe().facts([])).tun.mayMake).toBe(false);
});

test.each([
  ['nothing', '0', '0', false],
  ['a limit of −13', '33', '0', false],
  ['a limit of −14', '34', '0', true],
  ['CAP_SYS_NICE', '0', '0000000000800000', true],
])('the right to a higher priority, with %s: %s, %s', async (_name, limit, capabilities, may) => {
  system.write('proc/self/limits', `Max nice priority         ${limit}                    ${limit}\n`);
  system.write('proc/self/status', `CapEff:\t${capabilities}\n`);
  expect((await probe().facts([])).mayRaisePriority).toBe(may);
});

test.each([
  ['hardware', '6.19.0', {}],
  ['container', '6.19.0', { '.dockerenv': '' }],
  ['container', '6.19.0', { 'run/systemd/container': 'lxc' }],
  ['wsl', '6.6.87.2-microsoft-standard-WSL2', { 'proc/cpuinfo': 'flags\t\t: fpu hypervisor\n' }],
  ['virtual-machine', '6.19.0', { 'proc/cpuinfo': 'flags\t\t: fpu hypervisor lahf_lm\n' }],
  ['hardware', '6.19.0', { 'proc/cpuinfo': 'flags\t\t: fpu hypervisors\n' }],
] as const)('surroundings: %s', async (expected, release, files) => {
  for (const [path, text] of Object.entries(files)) system.write(path, text);
  expect(await probe().surroundings(release)).toBe(expected);
});

test('the folder for recordings: one that will be made is judged by what is above it', async () => {
  const there = await readRecordingsFolder(join(system.root, 'home/Documents/Queuescope'));
  expect(there.failureCode).toBeUndefined();
  expect(there.freeBytes).toBeGreaterThan(0);
  system.write('home/Documents', 'a file');
  expect(await readRecordingsFolder(join(system.root, 'home/Documents'))).toMatchObject({
    failureCode: 'ENOTDIR',
  });
  expect((await readRecordingsFolder(join(system.root, 'home/Documents/Queuescope'))).failureCode).toBe(
    'ENOTDIR',
  );
});
