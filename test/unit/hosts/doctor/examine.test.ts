import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  type Check,
  checkGroups,
  type CheckId,
  type CheckState,
  exitCodeOf,
  worstState,
} from '../../../../src/hosts/doctor/check.ts';
import { examine } from '../../../../src/hosts/doctor/examine.ts';
import type { Machine } from '../../../../src/hosts/doctor/machine.ts';
import { denied, linuxMachine, modem, netdev, node, otherMachine } from './fake-machine.ts';

function find(machine: Machine, id: CheckId): readonly Check[] {
  return examine(machine).filter((check) => check.id === id);
}

describe('the checks together', () => {
  test('a machine with nothing to do: all of them are there, and none complains', () => {
    const checks = examine(linuxMachine());
    expect(new Set(checks.map(({ id }) => id))).toEqual(new Set(Object.keys(checkGroups)));
    expect(checks.filter(({ state }) => state === 'warning' || state === 'problem')).toEqual([]);
    expect(exitCodeOf(checks)).toBe(0);
    expect(worstState(checks)).toBe('ok');
  });

  test.each(['darwin', 'win32'] as const)('%s: all are there, and Linux’s do not apply', (platform) => {
    const checks = examine(otherMachine(platform));
    expect(new Set(checks.map(({ id }) => id))).toEqual(new Set(Object.keys(checkGroups)));
    const left = checks.filter(({ state }) => state !== 'not-applicable').map(({ id }) => id);
    expect(left).toEqual(['node-version', 'recordings-folder', 'usb-library', 'usb-device', 'usb-driver']);
    expect(exitCodeOf(checks)).toBe(0);
  });

  test.each<[string, Partial<Machine>, number]>([
    ['no permission', { devices: [modem([denied])] }, 4],
    ['no library', { usbLibraryFailure: { message: 'No', remedy: undefined } }, 5],
    ['an old Node', { nodeVersion: '18.20.0' }, 5],
    ['no place to write', { recordings: { path: '/x', failureCode: 'EROFS', freeBytes: 0 } }, 2],
    [
      'a permission before the rest',
      {
        devices: [modem([denied])],
        nodeVersion: '18.20.0',
        recordings: { path: '/x', failureCode: 'EROFS', freeBytes: 0 },
      },
      4,
    ],
  ])('%s: its exit code', (_name, changes, code) => {
    const checks = examine(linuxMachine(changes));
    expect(exitCodeOf(checks)).toBe(code);
    expect(worstState(checks)).toBe('problem');
  });
});

test('docs/doctor.md has a row for every check, and for no other', () => {
  const text = readFileSync(new URL('../../../../docs/doctor.md', import.meta.url), 'utf8');
  const table = text.slice(text.indexOf('| check'), text.indexOf('With `--json`'));
  const rows = [...table.matchAll(/^\| (`[^|]+`) /gm)].flatMap(([, names = '']) => names.split(','));
  const listed = rows.map((name) => name.replaceAll(/[`\s]/g, ''));
  expect(listed.toSorted()).toEqual(Object.keys(checkGroups).toSorted());
});

describe('one check after the other', () => {
  test.each([
    ['20.19.0', 'ok'],
    ['20.18.9', 'problem'],
    ['20.20.0', 'ok'],
    ['21.0.0', 'ok'],
    ['9.99.99', 'problem'],
  ] as const)('Node %s: %s', (nodeVersion, state) => {
    expect(find(linuxMachine({ nodeVersion }), 'node-version')).toMatchObject([{ state }]);
  });

  /** What is changed of a machine with nothing to do, and what comes of it. */
  const cases: [
    name: string,
    machine: Machine,
    id: CheckId,
    state: CheckState,
    words: RegExp,
    remedy?: RegExp,
  ][] = [
    [
      'little space',
      linuxMachine({ recordings: { path: '/r', failureCode: undefined, freeBytes: 100e6 } }),
      'recordings-folder',
      'warning',
      /Only 100 MB are free/,
      /QUEUESCOPE_RECORDINGS/,
    ],
    [
      'no space',
      linuxMachine({ recordings: { path: '/r', failureCode: undefined, freeBytes: 1e6 } }),
      'recordings-folder',
      'problem',
      /Only 1\.00 MB/,
    ],
    [
      'libudev is missing',
      linuxMachine({ usbLibraryFailure: { message: 'USB cannot be opened', remedy: 'install libudev1' } }),
      'usb-library',
      'problem',
      /^USB cannot be opened\.$/,
      /libudev1/,
    ],
    [
      'a virtual machine without USB',
      linuxMachine(
        { surroundings: 'virtual-machine', devices: [] },
        { usbDevices: undefined, hasUsbNodes: false },
      ),
      'usb-nodes',
      'warning',
      /has no USB/,
      /Hand the device through.*\nnpx queuescope list --usbip HOST/,
    ],
    [
      'WSL',
      linuxMachine({ surroundings: 'wsl', devices: [] }, { usbDevices: 0, hasUsbNodes: false }),
      'usb-nodes',
      'warning',
      /has no USB/,
      /usbipd attach --wsl/,
    ],
    [
      'a container without nodes',
      linuxMachine({ surroundings: 'container' }, { hasUsbNodes: false }),
      'usb-nodes',
      'problem',
      /no \/dev\/bus\/usb/,
      /docker run -v \/dev\/bus\/usb:\/dev\/bus\/usb --device-cgroup-rule/,
    ],
    [
      'no permission: the rule that gives it',
      linuxMachine({ devices: [modem([denied])] }),
      'usb-device',
      'problem',
      /^usb:1-1 HUAWEI Mobile \(12d1:1506\): There is no permission to open \/dev\/bus\/usb\/001\/004\.$/,
      /ATTR\{idVendor\}=="12d1", ATTR\{idProduct\}=="1506", MODE="0660", TAG\+="uaccess"\nthen run\nudevadm/,
    ],
    [
      'no node in a container',
      linuxMachine({
        surroundings: 'container',
        devices: [modem([{ id: 'no-node', severity: 'error', message: 'There is no device node.' }])],
      }),
      'usb-device',
      'problem',
      /There is no device node/,
      /docker run -v/,
    ],
    [
      'a control group that denies what the mode allows',
      linuxMachine(
        { surroundings: 'container' },
        { usbNodes: new Map([['usb:1-1', node({ failureCode: 'EPERM' })]]) },
      ),
      'usb-device',
      'problem',
      /cannot be opened \(EPERM\)/,
      /c 189:\* rmw/,
    ],
    [
      'a USB 3 device at the speed of USB 2',
      linuxMachine({
        devices: [
          modem([{ id: 'usb2-fallback', severity: 'warning', message: 'Slow.', remedy: 'Use a cable.' }]),
        ],
      }),
      'usb-device',
      'warning',
      /: Slow\.$/,
      /cable/,
    ],
    [
      'nothing drives it',
      linuxMachine({
        devices: [
          modem([
            { id: 'not-driven', severity: 'info', message: 'Nothing here drives it.', remedy: 'Observe it.' },
          ]),
        ],
      }),
      'usb-device',
      'warning',
      /Nothing here drives it/,
      /Observe it/,
    ],
    [
      'a hub, which hinders nobody',
      linuxMachine({ devices: [modem([{ id: 'behind-hub', severity: 'info', message: 'A hub.' }])] }),
      'usb-device',
      'ok',
      /huawei_cdc_ncm drives it/,
    ],
    [
      'no device on a machine with USB',
      linuxMachine({ devices: [] }),
      'usb-device',
      'warning',
      /No USB network device is seen/,
      /usb_modeswitch/,
    ],
    [
      'adb',
      linuxMachine(
        {},
        { usbNodes: new Map([['usb:1-1', node({ holders: [{ pid: 77, command: 'adb' }] })]]) },
      ),
      'usb-holders',
      'warning',
      /held open by adb \(process 77\)/,
      /end that program:\nadb kill-server$/,
    ],
    [
      'a program that nobody knows',
      linuxMachine({}, { usbNodes: new Map([['usb:1-1', node({ holders: [{ pid: 77, command: 'x' }] })]]) }),
      'usb-holders',
      'warning',
      /held open by x \(process 77\)/,
      /end that program\.$/,
    ],
    [
      'a kernel that grants next to nothing',
      linuxMachine({}, { usbMemoryMegabytes: 1 }),
      'usb-memory',
      'warning',
      /1 MB/,
      /echo 64 \| sudo tee/,
    ],
    ['no bound', linuxMachine({}, { usbMemoryMegabytes: 0 }), 'usb-memory', 'ok', /not bounded/],
    [
      'no right to a higher priority',
      linuxMachine({}, { mayRaisePriority: false }),
      'priority',
      'warning',
      /may not raise its priority/,
      /limits\.d/,
    ],
    [
      'ModemManager and a modem',
      linuxMachine({}, { running: new Set(['ModemManager']) }),
      'modem-manager',
      'warning',
      /opens the ports of usb:1-1/,
      /systemctl stop ModemManager/,
    ],
    [
      'ModemManager and an adapter',
      linuxMachine(
        { devices: [modem([], { function: 'ethernet' })] },
        { running: new Set(['ModemManager']) },
      ),
      'modem-manager',
      'ok',
      /no modem/,
    ],
    [
      'the way out of this machine',
      linuxMachine({}, { netdevs: [netdev({}, { hasDefaultRoute: true })] }),
      'own-network',
      'warning',
      /through wwan0 of usb:1-1/,
      /run usb:1-1 --tap qs0/,
    ],
    [
      'NetworkManager and a USB interface',
      linuxMachine({}, { running: new Set(['NetworkManager']) }),
      'network-manager',
      'warning',
      /sets up wwan0/,
      /nmcli device set wwan0 managed no/,
    ],
    [
      'an old kernel',
      linuxMachine({ kernelRelease: '6.12.48' }),
      'kernel-bql',
      'warning',
      /older than 6\.19/,
    ],
    ['the first kernel', linuxMachine({ kernelRelease: '6.19.0' }), 'kernel-bql', 'ok', /has BQL/],
    ['a later kernel', linuxMachine({ kernelRelease: '7.2.12-amd64' }), 'kernel-bql', 'ok', /has BQL/],
    [
      'a release candidate',
      linuxMachine({ kernelRelease: '6.19.0-rc1' }),
      'kernel-bql',
      'warning',
      /wake from sleep/,
    ],
    [
      'a USB interface without limits',
      linuxMachine({ kernelRelease: '6.12.1' }, { netdevs: [netdev({ bqlQueues: [] })] }),
      'netdev',
      'warning',
      /keeps no Byte Queue Limits for wwan0/,
      /6\.12\.1/,
    ],
    [
      'another interface without limits',
      linuxMachine({}, { netdevs: [netdev({ name: 'wlan0', bus: 'pci', usb: undefined, bqlQueues: [] })] }),
      'netdev',
      'ok',
      /wlan0 \(cdc_ncm\): 1 transmit queue, without BQL/,
    ],
    [
      'autosuspend',
      linuxMachine({}, { usbNodes: new Map([['usb:1-1', node({ powerControl: 'auto' })]]) }),
      'usb-autosuspend',
      'warning',
      /may let usb:1-1 sleep/,
      /echo on \| sudo tee \/sys\/bus\/usb\/devices\/1-1\/power\/control/,
    ],
    [
      'limits that this user may not set',
      linuxMachine({ isRoot: false }, { netdevs: [netdev({}, { limitsAreWritable: false })] }),
      'set-limits',
      'warning',
      /only root/,
      /observe wwan0 --bql ab/,
    ],
    [
      'limits that nobody may set',
      linuxMachine({}, { netdevs: [netdev({}, { limitsAreWritable: false })] }),
      'set-limits',
      'warning',
      /read-only/,
    ],
    [
      'no ping',
      linuxMachine({}, { programs: new Set(['tc', 'ip']), ping: undefined }),
      'ping',
      'warning',
      /ping is missing/,
      /apt-get install iputils-ping/,
    ],
    [
      'another ping',
      linuxMachine({}, { ping: { isIputils: false, complaint: '', groupRange: undefined } }),
      'ping',
      'warning',
      /not that of iputils/,
    ],
    [
      'a ping that may not send',
      linuxMachine(
        {},
        {
          ping: { isIputils: true, complaint: 'ping: socktype: Operation not permitted', groupRange: '1 0' },
        },
      ),
      'ping',
      'warning',
      /no permission to send \(net\.ipv4\.ping_group_range is 1 0\)/,
      /setcap cap_net_raw[\s\S]*sysctl -w net\.ipv4\.ping_group_range/,
    ],
    [
      'a ping with another trouble',
      linuxMachine({}, { ping: { isIputils: true, complaint: 'lo is down', groupRange: undefined } }),
      'ping',
      'warning',
      /it says “lo is down”/,
    ],
    ...(['tc', 'ip', 'iperf3', 'irtt'] as const).map((program): (typeof cases)[number] => [
      `no ${program}`,
      linuxMachine({}, { programs: new Set(['ping']) }),
      program,
      'warning',
      new RegExp(`^${program} is missing`),
      /apt-get install/,
    ]),
  ];

  test.each(cases)('%s', (_name, machine, id, state, words, remedy) => {
    const [check, ...others] = find(machine, id);
    expect(others).toEqual([]);
    expect(check?.state).toBe(state);
    expect(check?.message).toMatch(words);
    if (remedy !== undefined) expect(check?.remedy).toMatch(remedy);
    // A warning about a program leaves the exit code alone.
    if (state === 'warning') expect(exitCodeOf(find(machine, id))).toBe(0);
  });

  test.each([
    ['ENOENT', 'hardware', /sudo modprobe tun/],
    ['ENOENT', 'container', /docker run --device \/dev\/net\/tun/],
    ['EPERM', 'container', /docker run --device \/dev\/net\/tun/],
    ['EACCES', 'container', /chmod a\+rw \/dev\/net\/tun\nsudo ip tuntap add/],
    ['EPERM', 'hardware', /journalctl/],
    [undefined, 'hardware', /belongs to you:\nsudo ip tuntap add/],
  ] as const)('TAP: /dev/net/tun says %s (%s)', (failureCode, surroundings, remedy) => {
    const { tun } = linuxMachine().linux ?? {};
    if (tun === undefined) throw new Error('the fake machine is no Linux');
    const machine = linuxMachine({ surroundings }, { tun: { ...tun, mayMake: false, failureCode } });
    const [check] = find(machine, 'tap');
    expect(check?.state).toBe('warning');
    expect(check?.remedy).toMatch(remedy);
    const owner = linuxMachine({}, { tun: { ...tun, mayMake: false, ownInterfaces: ['qs0'] } });
    expect(find(owner, 'tap')).toMatchObject([{ state: 'ok' }]);
  });

  test('an interface in use by a program: one finding if it is known, where to look if not', () => {
    const inUse = {
      id: 'in-use',
      severity: 'warning',
      message: 'Interface 0 is in use by another program.',
    } as const;
    const devices = [modem([inUse])];
    const unknown = linuxMachine({ devices, isRoot: false });
    expect(find(unknown, 'usb-device')).toMatchObject([
      { state: 'warning', remedy: expect.stringContaining('root') },
    ]);
    const known = linuxMachine(
      { devices },
      { usbNodes: new Map([['usb:1-1', node({ holders: [{ pid: 5, command: 'adb' }] })]]) },
    );
    expect(find(known, 'usb-device')).toMatchObject([{ state: 'ok' }]);
    expect(find(known, 'usb-holders')[0]?.message).toMatch(/in use by adb/);
  });

  test('limits that a killed session has left', () => {
    const left = { id: 'limits-left', severity: 'warning', message: 'Left.', remedy: 'echo 0' } as const;
    const kept = { ...modem([left]), id: 'net:wwan0', mode: 'observe' } as const;
    expect(find(linuxMachine({ devices: [modem(), kept] }), 'netdev')).toMatchObject([
      { state: 'warning', message: 'Left.', remedy: 'echo 0', subject: 'net:wwan0' },
      { state: 'ok' },
    ]);
  });

  test.each([
    ['darwin', /only as root/],
    ['win32', /Zadig/],
  ] as const)('%s: what it takes to get a device from its driver', (platform, remedy) => {
    const [check] = find(otherMachine(platform), 'usb-driver');
    expect(check).toMatchObject({ state: 'warning', remedy: expect.stringMatching(remedy) });
    expect(find(otherMachine(platform, { devices: [] }), 'usb-driver')).toMatchObject([
      { state: 'not-applicable' },
    ]);
  });
});
