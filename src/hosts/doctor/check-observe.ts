import { bqlProblem, describeQueues, hasUsbnetBql } from '../../engine/netdev-facts.ts';
import { pingDenied, pingInstallRemedy, pingPermissionRemedy } from '../../observe/os-ping.ts';
import { type Check, linuxOnly, notApplicable, ok, warning } from './check.ts';
import { drivenHere, usbNetdevs } from './check-usb.ts';
import type { Machine, MachineNetdev } from './machine.ts';

const observing = 'Interfaces that the system keeps are observed';

/** Whether usbnet's drivers keep limits in this kernel. */
export function checkKernel({ linux, kernelRelease }: Machine): Check {
  if (linux === undefined) return linuxOnly('kernel-bql', observing);
  if (/^6\.19\.0-?rc/.test(kernelRelease)) {
    return warning(
      'kernel-bql',
      `Linux ${kernelRelease} has BQL in usbnet, but its first release candidates crash when they wake from sleep.`,
      { remedy: 'Install Linux 6.19 or newer from your distribution.' },
    );
  }
  return hasUsbnetBql(kernelRelease)
    ? ok('kernel-bql', `Linux ${kernelRelease} has BQL in drivers built on usbnet.`)
    : warning(
        'kernel-bql',
        `Linux ${kernelRelease} is older than 6.19: observed USB devices of usbnet show no limit and no bytes in flight.`,
        { remedy: 'Drive the device from here, or install Linux 6.19 or newer from your distribution.' },
      );
}

/** Each interface that can be observed. */
export function checkNetdevs(machine: Machine): readonly Check[] {
  const { linux } = machine;
  if (linux === undefined) return [linuxOnly('netdev', observing)];
  if (linux.netdevs.length === 0) {
    return [notApplicable('netdev', 'The kernel keeps no network interface of a device.')];
  }
  return linux.netdevs.flatMap((netdev) => checkNetdev(netdev, machine));
}

function checkNetdev({ description }: MachineNetdev, { devices, kernelRelease }: Machine): readonly Check[] {
  const subject = `net:${description.name}`;
  const left = devices.find(({ id }) => id === subject)?.problems ?? [];
  const told = left.map(({ message, remedy }) => warning('netdev', message, { subject, remedy }));
  const lacking =
    description.bqlQueues.length === 0 ? bqlProblem(description, 'absent', kernelRelease) : undefined;
  if (lacking !== undefined && description.bus === 'usb') {
    return [...told, warning('netdev', lacking.message, { subject, remedy: lacking.remedy })];
  }
  const driver = description.driver === undefined ? '' : ` (${description.driver})`;
  return [...told, ok('netdev', `${description.name}${driver}: ${describeQueues(description)}.`, subject)];
}

/** What sleeps when it is idle does not always wake up; a driven device is kept awake by being open. */
export function checkAutosuspend(machine: Machine): readonly Check[] {
  const { linux } = machine;
  if (linux === undefined) return [linuxOnly('usb-autosuspend', 'USB devices are put to sleep one by one')];
  const devices = drivenHere(machine);
  if (devices.length === 0) return [notApplicable('usb-autosuspend', 'No USB network device is plugged in.')];
  const asleep = devices.filter(({ id }) => linux.usbNodes.get(id)?.powerControl === 'auto');
  if (asleep.length === 0) {
    return [ok('usb-autosuspend', 'No USB network device is put to sleep when it is idle.')];
  }
  return asleep.map(({ id }) =>
    warning('usb-autosuspend', `The kernel may let ${id} sleep when it is idle; some modems then stop.`, {
      subject: id,
      remedy: `Keep it awake while it is observed:\necho on | sudo tee /sys/bus/usb/devices/${id.slice('usb:'.length)}/power/control`,
    }),
  );
}

/** Observing needs no rights; setting limits does. */
export function checkSetLimits({ linux, isRoot }: Machine): Check {
  if (linux === undefined) return linuxOnly('set-limits', observing);
  const withLimits = linux.netdevs.filter(({ description }) => description.bqlQueues.length > 0);
  const [first] = withLimits;
  if (first === undefined) return notApplicable('set-limits', 'No interface has limits to set.');
  if (withLimits.some(({ limitsAreWritable }) => limitsAreWritable)) {
    return ok('set-limits', 'BQL’s limits can be set.');
  }
  return isRoot
    ? warning('set-limits', 'BQL’s limits are read-only here: they can be observed, but not set.', {
        remedy: 'In a container, start it with\ndocker run --privileged --network host IMAGE',
      })
    : warning(
        'set-limits',
        'Observing needs no rights, but only root may set BQL’s limits (--bql, --limit-min).',
        {
          remedy: `sudo -E env "PATH=$PATH" npx queuescope observe ${first.description.name} --bql ab`,
        },
      );
}

/** Round trips of observed interfaces come from the system's own ping. */
export function checkPing({ linux }: Machine): Check {
  if (linux === undefined) return linuxOnly('ping', 'The system’s ping is used');
  const { programs, ping } = linux;
  if (!programs.has('ping')) {
    return warning(
      'ping',
      'The program ping is missing: round trips of observed interfaces are not measured.',
      {
        remedy: pingInstallRemedy,
      },
    );
  }
  if (ping === undefined || !ping.isIputils) {
    return warning(
      'ping',
      'This ping is not that of iputils: round trips of observed interfaces are not measured.',
      {
        remedy: pingInstallRemedy,
      },
    );
  }
  if (ping.complaint === '') return ok('ping', 'ping may send.');
  if (pingDenied.test(ping.complaint)) {
    const range = ping.groupRange === undefined ? '' : ` (net.ipv4.ping_group_range is ${ping.groupRange})`;
    return warning('ping', `ping has no permission to send${range}.`, {
      remedy: `${pingPermissionRemedy}\nor let every user send pings:\nsudo sysctl -w net.ipv4.ping_group_range="0 2147483647"`,
    });
  }
  return warning('ping', `ping does not work: it says “${ping.complaint}”.`);
}

/** What an interface has waiting is asked of tc. */
export function checkTc({ linux }: Machine): Check {
  if (linux === undefined) return linuxOnly('tc', 'The queueing discipline of an interface is read');
  return linux.programs.has('tc')
    ? ok('tc', 'tc is there, for the queueing discipline of observed interfaces.')
    : warning('tc', 'tc is missing: the queueing discipline of observed interfaces is not shown.', {
        remedy: 'Install it:\nsudo apt-get install iproute2',
      });
}

/** NetworkManager sets up whatever interface appears. */
export function checkNetworkManager({ linux }: Machine): Check {
  if (linux === undefined) return linuxOnly('network-manager', 'NetworkManager runs');
  if (!linux.running.has('NetworkManager')) return ok('network-manager', 'NetworkManager does not run.');
  const names = usbNetdevs(linux).map(({ description }) => description.name);
  if (names.length === 0) {
    return ok('network-manager', 'NetworkManager runs, and has no USB device to set up.');
  }
  return warning(
    'network-manager',
    `NetworkManager runs: it sets up ${names.join(', ')} whenever it appears, and may move the default route there.`,
    {
      remedy: [
        'If that is in the way, let it keep off:',
        ...names.map((name) => `nmcli device set ${name} managed no`),
      ].join('\n'),
    },
  );
}
