import { AppError, type ErrorKind } from '../base/errors.ts';
import { opStatuses, usbipVersion } from '../wire/usbip.ts';
import { formatUsbipDeviceId, formatUsbipServer, type UsbipServer } from './usbip-address.ts';

/** Failures of a USB/IP server and of the way to it, in words with a remedy. */

const startServer =
  'On that machine, as root, offer the device:\n' +
  '  modprobe usbip-host && usbipd -D\n' +
  '  usbip list --local\n' +
  '  usbip bind --busid BUSID';

/** 0x0111 is "1.1.1". */
export function formatUsbipVersion(version: number): string {
  return [version >>> 8, (version >>> 4) & 0xf, version & 0xf].map((part) => part.toString(16)).join('.');
}

function serverError(
  kind: ErrorKind,
  server: UsbipServer,
  message: string,
  remedy: string,
  cause?: unknown,
): AppError {
  return new AppError(kind, message, {
    details: { host: server.host, port: server.port },
    remedy,
    ...(cause === undefined ? {} : { cause }),
  });
}

function place({ host, port }: UsbipServer): string {
  return `${host} port ${port}`;
}

/** There was no connection. @param code Node's name of the reason */
export function connectFailure(server: UsbipServer, code: string, cause?: unknown): AppError {
  switch (code) {
    case 'ECONNREFUSED':
      return serverError(
        'no-such-device',
        server,
        `no USB/IP server listens at ${place(server)}`,
        startServer,
        cause,
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return serverError(
        'no-such-device',
        server,
        `there is no machine with the name ${server.host}`,
        'Check the name, or use the address of the machine.',
        cause,
      );
    default:
      return serverError(
        'timed-out',
        server,
        `${place(server)} cannot be reached (${code})`,
        `Check the address, that the machine is on, and that no firewall on the way stops TCP port ${server.port}.`,
        cause,
      );
  }
}

/** It took the connection, and then said nothing. */
export function noAnswer(server: UsbipServer): AppError {
  return serverError(
    'timed-out',
    server,
    `the USB/IP server at ${place(server)} does not answer`,
    'Another client may have it busy. Try again; if that does not help, start usbipd anew there.',
  );
}

/** It hung up instead of answering. */
export function hungUp(server: UsbipServer, cause?: unknown): AppError {
  return serverError(
    'device-failed',
    server,
    `the USB/IP server at ${place(server)} closed the connection without an answer`,
    `It may speak another version of USB/IP than ${formatUsbipVersion(usbipVersion)}, or not let this machine in. Its log says why (usbipd -d).`,
    cause,
  );
}

export function otherVersion(server: UsbipServer, version: number): AppError {
  return serverError(
    'device-failed',
    server,
    `the USB/IP server at ${place(server)} speaks version ${formatUsbipVersion(version)}, and only ` +
      `${formatUsbipVersion(usbipVersion)} is known here`,
    'Install the usbip tools that belong to the kernel of that machine.',
  );
}

export function noUsbipServer(server: UsbipServer): AppError {
  return serverError(
    'device-failed',
    server,
    `what listens at ${place(server)} is no USB/IP server`,
    'Check the port; usbipd uses 3240.',
  );
}

/** The server refused its list. */
export function listRefused(server: UsbipServer, status: number): AppError {
  return serverError(
    'device-failed',
    server,
    `the USB/IP server at ${place(server)} does not tell its devices (status ${status})`,
    'Start usbipd anew there.',
  );
}

/** The server refused a device. */
export function importRefused(server: UsbipServer, busId: string, status: number): AppError {
  const id = formatUsbipDeviceId(server, busId);
  const options = { details: { id, status } };
  switch (status) {
    case opStatuses.busy:
      return new AppError('device-busy', `${id} is in use by another client of the server`, {
        ...options,
        remedy:
          'Detach it there (usbip detach), or end the program that drives it. After a client has vanished, the server ' +
          'may need minutes to notice; as root on the server:\n' +
          `  usbip unbind --busid ${busId} && usbip bind --busid ${busId}`,
      });
    case opStatuses.notAvailable:
    case opStatuses.noSuchDevice:
      return new AppError('no-such-device', `${formatUsbipServer(server)} does not offer ${busId}`, {
        ...options,
        remedy:
          `See what it offers with:\n  npx queuescope list --usbip ${formatUsbipServer(server)}\n` +
          `On that machine, as root, offer it with:\n  usbip bind --busid ${busId}`,
      });
    default:
      return new AppError('device-failed', `the server cannot hand out ${id} (status ${status})`, {
        ...options,
        remedy: `As root on the server:\n  usbip unbind --busid ${busId} && usbip bind --busid ${busId}`,
      });
  }
}

/** Why a connection with a device on it ended. */
export type UsbipLoss = 'closed' | 'broken' | 'silent' | 'nonsense' | 'unplugged';

const lossWords: Readonly<Record<UsbipLoss, string>> = {
  closed: 'the server closed the connection',
  broken: 'the connection broke',
  silent: 'the server fell silent',
  nonsense: 'the server sent what makes no sense',
  unplugged: 'the device is gone from the server',
};

const lossRemedies: Readonly<Record<UsbipLoss, string>> = {
  closed: 'The device was unplugged there, or taken back (usbip unbind).',
  broken: 'Check the network, and that the machine still runs.',
  silent: 'Check the network, and that the machine still runs.',
  nonsense: 'The server may have a fault; the log has more.',
  unplugged: 'Plug it in there again, and bind it if that does not happen by itself.',
};

/** @param detail Node's name of the reason, if there is one */
export function deviceLost(id: string, loss: UsbipLoss, detail?: string): AppError {
  const reason = detail === undefined ? lossWords[loss] : `${lossWords[loss]} (${detail})`;
  return new AppError('device-gone', `${id} was lost: ${reason}`, {
    details: { id, loss },
    remedy: lossRemedies[loss],
  });
}
