import { formatBytes } from '../../base/units.ts';
import { raisedPriority } from '../../engine/thread-priority.ts';
import { type Check, linuxOnly, ok, problem, warning } from './check.ts';
import type { Machine } from './machine.ts';

/** What `engines` of package.json asks for. */
const leastNode = [20, 19, 0] as const;
/** Four devices give 15 MB an hour. */
const littleBytes = 500_000_000;
const tooLittleBytes = 20_000_000;

/** Whether Node is new enough. */
export function checkNode({ nodeVersion }: Machine): Check {
  const needed = leastNode.join('.');
  const parts = nodeVersion.split('.').map((part) => Number.parseInt(part, 10));
  const different = leastNode.findIndex((least, i) => parts[i] !== least);
  const isNewEnough = different < 0 || (parts[different] ?? 0) > (leastNode[different] ?? 0);
  return isNewEnough
    ? ok('node-version', `Node ${nodeVersion} is new enough.`)
    : problem('node-version', 'device-failed', `Node ${nodeVersion} is too old: ${needed} is the oldest.`, {
        remedy: 'Install a newer one from nodejs.org, or with a version manager:\nnvm install --lts',
      });
}

const folderFailures: Readonly<Record<string, string>> = {
  EACCES: 'there is no permission',
  EPERM: 'there is no permission',
  EROFS: 'the disk is write-protected',
  ENOTDIR: 'a part of the path is a file',
  ENOENT: 'there is no such disk',
};

/** Whether what is measured can be kept. */
export function checkRecordings({ recordings }: Machine): Check {
  const { path, failureCode, freeBytes } = recordings;
  if (failureCode !== undefined) {
    return problem(
      'recordings-folder',
      'file-failed',
      `Recordings cannot be written to ${path}: ${folderFailures[failureCode] ?? failureCode}.`,
      {
        remedy: 'Name another folder, in a variable of the environment:\nexport QUEUESCOPE_RECORDINGS=FOLDER',
      },
    );
  }
  const space = `${formatBytes(freeBytes)} are free for recordings in ${path}`;
  if (freeBytes >= littleBytes) return ok('recordings-folder', `${space}.`);
  const remedy =
    'Free space on that disk, or name a folder on another one:\nexport QUEUESCOPE_RECORDINGS=FOLDER';
  return freeBytes < tooLittleBytes
    ? problem('recordings-folder', 'file-failed', `Only ${space}.`, { remedy })
    : warning('recordings-folder', `Only ${space}; four devices write 15 MB an hour.`, { remedy });
}

/** Whether frames are moved before other programs get their turn. */
export function checkPriority({ linux }: Machine): Check {
  if (linux === undefined) return linuxOnly('priority', 'A right is needed to raise a priority');
  return linux.mayRaisePriority
    ? ok('priority', 'The thread that moves frames may run before other programs.')
    : warning(
        'priority',
        'The thread that moves frames may not raise its priority: while other programs keep this machine busy, limits and pings are higher than the device needs.',
        {
          remedy: `Run as root, or allow it to your user and log in again:\necho "$USER - nice ${raisedPriority}" | sudo tee /etc/security/limits.d/queuescope.conf`,
        },
      );
}
