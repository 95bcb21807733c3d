import { type Check, linuxOnly, ok, warning } from './check.ts';
import type { Machine, SoughtProgram, Surroundings } from './machine.ts';

const tapFailsForLack: ReadonlySet<string> = new Set(['ENOENT', 'ENODEV', 'ENXIO']);

const tapForContainer =
  'Start the container with\ndocker run --device /dev/net/tun --cap-add NET_ADMIN IMAGE';

/** Whether `--tap` can give the host an interface of its own. */
export function checkTap({ linux, surroundings }: Machine): Check {
  if (linux === undefined) return linuxOnly('tap', 'TAP interfaces work');
  const { failureCode, mayMake, ownInterfaces, makeCommands } = linux.tun;
  if (failureCode !== undefined) return notOpened(failureCode, surroundings, makeCommands);
  if (mayMake) return ok('tap', 'TAP interfaces can be made.');
  return ownInterfaces.length > 0
    ? ok('tap', `The TAP interface ${ownInterfaces.join(', ')} belongs to you, for --tap.`)
    : warning('tap', 'There is no right to make a TAP interface, for --tap.', {
        remedy: `Make one that belongs to you:\n${makeCommands}`,
      });
}

function notOpened(code: string, surroundings: Surroundings, makeCommands: string): Check {
  const isMissing = tapFailsForLack.has(code);
  const message = isMissing
    ? 'This system has no TAP interfaces: --tap does not work.'
    : `/dev/net/tun cannot be opened (${code}): --tap does not work.`;
  if (code === 'EACCES') {
    return warning('tap', message, {
      remedy: `Let every user open it, as most systems do, and make an interface of your own:\nsudo chmod a+rw /dev/net/tun\n${makeCommands}`,
    });
  }
  if (surroundings === 'container') return warning('tap', message, { remedy: tapForContainer });
  return warning('tap', message, {
    remedy: isMissing
      ? 'Load the kernel module:\nsudo modprobe tun'
      : 'A policy of this system denies it; what it says is in\nsudo journalctl -k -n 50',
  });
}

interface Tool {
  /** Debian's. */
  readonly packageName: string;
  /** What it is for, as the rest of a sentence. */
  readonly use: string;
}

/** Programs beside a TAP interface, and what is left out without them. */
export const tapTools = {
  ip: { packageName: 'iproute2', use: 'setting up the host’s side of --tap' },
  iperf3: {
    packageName: 'iperf3',
    use: 'scenarios whose load is by iperf3-tcp or iperf3-udp, like rrul-like',
  },
  irtt: { packageName: 'irtt', use: 'scenarios with a probe of kind irtt, like rrul-like (one-way delay)' },
} as const satisfies Partial<Record<SoughtProgram, Tool>>;

/** Whether one of them is there. */
export function checkTool(id: keyof typeof tapTools, { linux }: Machine): Check {
  if (linux === undefined) return linuxOnly(id, 'TAP interfaces work');
  const { packageName, use } = tapTools[id];
  return linux.programs.has(id)
    ? ok(id, `${id} is there, for ${use}.`)
    : warning(id, `${id} is missing, for ${use}.`, {
        remedy: `Install it:\nsudo apt-get install ${packageName}`,
      });
}
