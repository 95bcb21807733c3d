import { type AddressInfo, createServer, type Server } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { UsbipExports } from '../../sim/usbip-exports.ts';
import { UsbipConnection, type UsbipDeviceHook, type UsbipEvent } from './usbip-connection.ts';

const maxConnections = 64;

export interface UsbipHostOptions {
  readonly exports: UsbipExports;
  /** Address to listen at. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly onEvent: (event: UsbipEvent) => void;
  readonly onDevice?: UsbipDeviceHook | undefined;
}

/** A running USB/IP server. */
export interface UsbipHost {
  readonly host: string;
  readonly port: number;
  /** Takes every device back and ends. */
  close(): Promise<void>;
}

/**
 * Starts a USB/IP server for virtual devices. Whoever can reach it can use them: the protocol knows no passwords.
 * @throws AppError `usage` if the port is taken or not allowed, or there is no such address here
 */
export async function startUsbipHost(options: UsbipHostOptions): Promise<UsbipHost> {
  const connections = new Set<UsbipConnection>();
  const server = createServer((socket) => {
    const connection = new UsbipConnection({
      socket,
      exports: options.exports,
      clock: options.clock,
      log: options.log,
      onEvent: options.onEvent,
      onDevice: options.onDevice,
      onClosed: () => connections.delete(connection),
    });
    connections.add(connection);
  });
  server.maxConnections = maxConnections;
  const { address, port } = await listen(server, options);
  return {
    host: address,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of connections) connection.close();
      }),
  };
}

async function listen(server: Server, { host, port }: UsbipHostOptions): Promise<AddressInfo> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new AppError('usage', `port ${port} of ${host} cannot be used (${code})`, {
      details: { host, port },
      remedy: 'Name another port (--port), or end the program that has it (usbipd, perhaps).',
      cause,
    });
  }
  return server.address() as AddressInfo;
}
