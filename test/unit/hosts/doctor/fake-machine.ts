import type { Device } from '../../../../src/contract/device.ts';
import type { Problem } from '../../../../src/contract/problem.ts';
import type { LinuxFacts, Machine, MachineNetdev, UsbNode } from '../../../../src/hosts/doctor/machine.ts';
import { accessRemedy } from '../../../../src/transports/libusb-errors.ts';
import type { NetdevDescription } from '../../../../src/observe/netdev-files.ts';

/** What is told of that modem while nobody has given a permission. */
export const denied: Problem = {
  id: 'access-denied',
  severity: 'error',
  message: 'There is no permission to open /dev/bus/usb/001/004.',
  remedy: accessRemedy(
    { id: 'usb:1-1', vendorId: 0x12d1, productId: 0x1506, nodePath: '/dev/bus/usb/001/004' },
    'linux',
    true,
  ),
};

/** A modem on this machine's USB. */
export function modem(problems: readonly Problem[] = [], more: Partial<Device> = {}): Device {
  return {
    id: 'usb:1-1',
    mode: 'drive',
    vendorId: 0x12d1,
    productId: 0x1506,
    name: 'HUAWEI Mobile',
    speed: 'high',
    function: 'wwan',
    minidriver: 'huawei_cdc_ncm',
    state: 'available',
    problems: [...problems],
    ...more,
  };
}

export function node(more: Partial<UsbNode> = {}): UsbNode {
  return {
    path: '/dev/bus/usb/001/004',
    failureCode: undefined,
    holders: [],
    powerControl: 'on',
    ...more,
  };
}

/** Its network interface in the kernel. */
export function netdev(
  description: Partial<NetdevDescription> = {},
  more: Partial<MachineNetdev> = {},
): MachineNetdev {
  return {
    description: {
      name: 'wwan0',
      index: 7,
      function: 'wwan',
      macAddress: undefined,
      mtuBytes: 1500,
      queueLengthPackets: 1000,
      operState: 'up',
      driver: 'cdc_ncm',
      driverVersion: undefined,
      bus: 'usb',
      busAddress: '1-1:1.0',
      usb: {
        name: '1-1',
        vendorId: 0x12d1,
        productId: 0x1506,
        manufacturer: undefined,
        product: undefined,
        speedMbit: '480',
      },
      txQueues: ['tx-0'],
      bqlQueues: ['tx-0'],
      ...description,
    },
    hasDefaultRoute: false,
    limitsAreWritable: true,
    ...more,
  };
}

/** A Linux machine with one modem, on which there is nothing to do. */
export function linuxMachine(changes: Partial<Machine> = {}, linux: Partial<LinuxFacts> = {}): Machine {
  return {
    platform: 'linux',
    surroundings: 'hardware',
    kernelRelease: '6.19.3',
    nodeVersion: '22.11.0',
    isRoot: true,
    recordings: { path: '/home/me/Documents/Queuescope', failureCode: undefined, freeBytes: 80e9 },
    usbLibraryFailure: undefined,
    devices: [modem()],
    linux: {
      usbDevices: 4,
      hasUsbNodes: true,
      usbNodes: new Map([['usb:1-1', node()]]),
      usbMemoryMegabytes: 16,
      mayRaisePriority: true,
      running: new Set(['systemd']),
      netdevs: [netdev()],
      programs: new Set(['ping', 'tc', 'ip', 'iperf3', 'irtt']),
      ping: { isIputils: true, complaint: '', groupRange: '0 2147483647' },
      tun: {
        failureCode: undefined,
        mayMake: true,
        ownInterfaces: [],
        makeCommands: 'sudo ip tuntap add dev qs0 mode tap user me',
      },
      ...linux,
    },
    ...changes,
  };
}

/** A machine that is no Linux. */
export function otherMachine(platform: 'darwin' | 'win32', changes: Partial<Machine> = {}): Machine {
  return { ...linuxMachine({ platform, isRoot: false, ...changes }), linux: undefined };
}
