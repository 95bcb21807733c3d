import type { Device } from '../../contract/device.ts';
import type { Problem } from '../../contract/problem.ts';
import { formatUsbId } from '../../minidrivers/described-device.ts';
import { accessRemedy, describeHolders, missingNodeRemedy } from '../../transports/libusb-errors.ts';
import type { NodeHolder } from '../../transports/linux-usb-files.ts';
import { type Check, linuxOnly, notApplicable, ok, problem, warning } from './check.ts';
import type { LinuxFacts, Machine, Surroundings, UsbNode } from './machine.ts';

/** Devices that hang on this machine's USB and may be about networks. */
export function drivenHere({ devices }: Machine): readonly Device[] {
  return devices.filter(({ mode }) => mode === 'drive');
}

/** Whether libusb can be used at all. */
export function checkLibrary({ usbLibraryFailure }: Machine): Check {
  return usbLibraryFailure === undefined
    ? ok('usb-library', 'The USB library loads.')
    : problem('usb-library', 'device-failed', `${usbLibraryFailure.message}.`, {
        remedy: usbLibraryFailure.remedy,
      });
}

/** How a device gets to where this system runs. */
const waysIn: Readonly<Record<Surroundings, string>> = {
  hardware: 'If a device is plugged in, load the driver of the USB controller:\nsudo modprobe xhci_pci',
  container:
    'A container has the USB of its host: look there. Or reach a device over USB/IP:\nnpx queuescope list --usbip HOST',
  'virtual-machine':
    'Hand the device through to this virtual machine, or reach it over USB/IP:\nnpx queuescope list --usbip HOST',
  wsl: 'On Windows, in a shell of the administrator:\nusbipd list\nusbipd bind --busid BUSID\nusbipd attach --wsl --busid BUSID',
};

/** The device nodes that a container gets none of unless it is asked for. */
const nodesForContainer =
  'Start the container with its host’s USB, as it is and as it will be:\n' +
  "docker run -v /dev/bus/usb:/dev/bus/usb --device-cgroup-rule='c 189:* rmw' IMAGE";

/** Whether there is USB, and a way for a program to get to it. */
export function checkNodes(machine: Machine): Check {
  const { linux, surroundings } = machine;
  if (linux === undefined) return linuxOnly('usb-nodes', 'USB devices have nodes in /dev');
  const { usbDevices, hasUsbNodes } = linux;
  if (usbDevices === undefined || (usbDevices === 0 && !hasUsbNodes)) {
    return warning('usb-nodes', 'This system has no USB; virtual and remote devices work all the same.', {
      remedy: waysIn[surroundings],
    });
  }
  if (!hasUsbNodes) {
    return problem(
      'usb-nodes',
      'access-denied',
      'The kernel has USB devices, but there is no /dev/bus/usb to open them by.',
      { remedy: surroundings === 'container' ? nodesForContainer : missingNodeRemedy },
    );
  }
  return ok('usb-nodes', 'USB devices have their nodes in /dev/bus/usb.');
}

/** Each network device that is plugged in: what keeps it from being driven, or what costs it speed. */
export function checkDevices(machine: Machine): readonly Check[] {
  const devices = drivenHere(machine);
  if (devices.length > 0) return devices.flatMap((device) => checkDevice(device, machine));
  // Nothing was plugged into a machine that has no USB, and checkNodes has said so.
  if (machine.linux !== undefined && (machine.linux.usbDevices ?? 0) === 0) {
    return [notApplicable('usb-device', 'No USB network device is plugged in.')];
  }
  return [
    warning('usb-device', 'No USB network device is seen.', {
      remedy:
        machine.surroundings === 'hardware'
          ? 'If one is plugged in, try another cable and port. One that shows up as a disk has to be switched by usb_modeswitch.'
          : waysIn[machine.surroundings],
    }),
  ];
}

/** What is told of a device though it hinders nobody, as the list does. */
const remarks: ReadonlySet<string> = new Set(['behind-hub', 'other-configuration']);

function checkDevice(device: Device, machine: Machine): readonly Check[] {
  const node = machine.linux?.usbNodes.get(device.id);
  const found = device.problems
    .filter(({ id }) => !remarks.has(id))
    // Who it is, and what to do about it, is told of the node's holders.
    .filter(({ id }) => id !== 'in-use' || (node?.holders ?? []).length === 0)
    .map((fault) => ofProblem(device, fault, machine.surroundings));
  const isDenied = found.some(({ state }) => state === 'problem');
  if (!isDenied && node?.failureCode !== undefined) {
    found.unshift(notOpened(device, node, node.failureCode, machine.surroundings));
  }
  return found.length > 0
    ? found
    : [ok('usb-device', `${nameOf(device)}: ${device.minidriver ?? 'nothing here'} drives it.`, device.id)];
}

function nameOf({ id, name, vendorId, productId }: Device): string {
  const ids =
    vendorId === undefined || productId === undefined ? '' : ` (${formatUsbId(vendorId, productId)})`;
  return `${id} ${name}${ids}`;
}

function ofProblem(device: Device, fault: Problem, surroundings: Surroundings): Check {
  const text = `${nameOf(device)}: ${fault.message}`;
  const about = { subject: device.id, remedy: remedyOf(fault, surroundings) };
  return fault.severity === 'error'
    ? problem('usb-device', 'access-denied', text, about)
    : warning('usb-device', text, about);
}

/** That of the list, and more where more is known here. */
function remedyOf({ id, remedy }: Problem, surroundings: Surroundings): string | undefined {
  if (id === 'in-use') return holderHint;
  return id === 'no-node' && surroundings === 'container' ? nodesForContainer : remedy;
}

const holderHint = 'Which program it is, root can see:\nsudo -E env "PATH=$PATH" npx queuescope doctor';

function notOpened(device: Device, node: UsbNode, code: string, surroundings: Surroundings): Check {
  const isDenied = code === 'EPERM' || code === 'EACCES';
  return problem(
    'usb-device',
    isDenied ? 'access-denied' : 'device-failed',
    `${nameOf(device)}: ${node.path} cannot be opened (${code}).`,
    {
      subject: device.id,
      remedy: !isDenied
        ? 'Unplug the device and plug it in again.'
        : surroundings === 'container'
          ? nodesForContainer
          : `A policy of this system (a control group, a security module) denies it; look for it with\nsudo journalctl -k -n 50`,
    },
  );
}

/** Programs that are known to keep devices open, and how they are made to let go. */
const letGo: Readonly<Record<string, string>> = {
  adb: 'adb kill-server',
  usbmuxd: 'sudo systemctl stop usbmuxd',
  ModemManager: 'sudo systemctl stop ModemManager',
  fwupd: 'sudo systemctl stop fwupd',
};

/** Programs that have a device open already. */
export function checkHolders(machine: Machine): readonly Check[] {
  const { linux } = machine;
  if (linux === undefined) return [linuxOnly('usb-holders', 'Who has a device open is known')];
  const devices = drivenHere(machine);
  if (devices.length === 0) return [notApplicable('usb-holders', 'No USB network device is plugged in.')];
  const held = devices.flatMap((device) => {
    const holders = linux.usbNodes.get(device.id)?.holders ?? [];
    return holders.length === 0 ? [] : [heldBy(device, holders)];
  });
  if (held.length > 0) return held;
  const seen = machine.isRoot ? '' : ' (programs of other users are seen by root only)';
  return [ok('usb-holders', `No other program has a device open${seen}.`)];
}

function heldBy(device: Device, holders: readonly NodeHolder[]): Check {
  const commands = [...new Set(holders.flatMap(({ command }) => letGo[command] ?? []))];
  const isUsed = device.problems.some(({ id }) => id === 'in-use');
  return warning(
    'usb-holders',
    `${nameOf(device)}: it is ${isUsed ? 'in use' : 'held open'} by ${describeHolders(holders)}.`,
    {
      subject: device.id,
      remedy: ['If it is in the way, end that program:', ...commands].join('\n').replace(/:$/, '.'),
    },
  );
}

/** The driver that other systems let nobody take a device from. */
export function checkDriver(machine: Machine): Check {
  const { platform, isRoot } = machine;
  if (platform === 'linux') return notApplicable('usb-driver', 'Linux hands a device over by itself.');
  const [device] = drivenHere(machine);
  if (device === undefined) return notApplicable('usb-driver', 'No USB network device is plugged in.');
  if (platform === 'darwin' && isRoot) return ok('usb-driver', 'As root, a device is taken from its driver.');
  const { id, vendorId = 0, productId = 0 } = device;
  return warning('usb-driver', 'Whether a device can be taken from its driver shows when it is opened.', {
    remedy: accessRemedy({ id, vendorId, productId, nodePath: undefined }, platform, false),
  });
}

/** A queue each way of at most 455 KB (usbnet at SuperSpeed), and what the kernel adds to each transfer. */
const megabytesPerDevice = 2;

/** Whether the kernel grants the transfers the memory that they need. */
export function checkMemory(machine: Machine): Check {
  const megabytes = machine.linux?.usbMemoryMegabytes;
  if (machine.linux === undefined) return linuxOnly('usb-memory', 'Memory for USB transfers is bounded');
  if (megabytes === undefined) return notApplicable('usb-memory', 'This system has no USB.');
  if (megabytes === 0) return ok('usb-memory', 'Memory for USB transfers is not bounded.');
  const needed = megabytesPerDevice * Math.max(1, drivenHere(machine).length);
  const bound = `All programs together may have ${megabytes} MB of USB transfers (usbfs_memory_mb)`;
  return megabytes >= needed
    ? ok('usb-memory', `${bound}; a device takes up to ${megabytesPerDevice}.`)
    : warning('usb-memory', `${bound}; these devices may need ${needed}.`, {
        remedy: 'Raise it:\necho 64 | sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb',
      });
}

/** ModemManager talks to a modem at the same time, and may switch it to another mode. */
export function checkModemManager(machine: Machine): Check {
  if (machine.linux === undefined) return linuxOnly('modem-manager', 'ModemManager runs');
  if (!machine.linux.running.has('ModemManager')) return ok('modem-manager', 'ModemManager does not run.');
  const modems = drivenHere(machine).filter((device) => device.function === 'wwan');
  if (modems.length === 0) return ok('modem-manager', 'ModemManager runs, and no modem is plugged in.');
  const names = modems.map(({ id }) => id).join(', ');
  return warning(
    'modem-manager',
    `ModemManager runs: it opens the ports of ${names}, and may connect or reset what is driven from here.`,
    {
      remedy:
        'Stop it while you measure:\nsudo systemctl stop ModemManager\nand afterwards\nsudo systemctl start ModemManager',
    },
  );
}

/** Who drives the device that he is logged in over loses the way in. */
export function checkOwnNetwork({ linux }: Machine): Check {
  if (linux === undefined) return linuxOnly('own-network', 'The way out of this machine is looked at');
  const way = usbNetdevs(linux).find(({ hasDefaultRoute }) => hasDefaultRoute)?.description;
  if (way?.usb === undefined) {
    return ok('own-network', 'This machine’s own network does not need a USB device.');
  }
  const id = `usb:${way.usb.name}`;
  return warning(
    'own-network',
    `This machine’s own network goes through ${way.name} of ${id}: it is gone while that is driven, and a login over it, too.`,
    {
      subject: id,
      remedy: `Let the host share the device while it is driven, as root:\nnpx queuescope run ${id} --tap qs0`,
    },
  );
}

/** The kernel's interfaces that have a USB device behind them. */
export function usbNetdevs({ netdevs }: LinuxFacts): LinuxFacts['netdevs'] {
  return netdevs.filter(({ description }) => description.bus === 'usb');
}
