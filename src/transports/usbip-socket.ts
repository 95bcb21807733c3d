import { connect, type Socket } from 'node:net';
import { type AppError } from '../base/errors.ts';
import {
  encodeImportRequest,
  encodeOpHeader,
  opCodes,
  type UsbipDevice,
  type UsbipListedDevice,
} from '../wire/usbip.ts';
import { DeviceListReplyReader, ImportReplyReader, type OpReply } from '../wire/usbip-reader.ts';
import type { UsbipServer } from './usbip-address.ts';
import {
  connectFailure,
  hungUp,
  importRefused,
  listRefused,
  noAnswer,
  noUsbipServer,
  otherVersion,
} from './usbip-errors.ts';

/** How long a server may take to accept a connection, and to answer the question that opens it. */
export interface UsbipLimits {
  readonly connectMs: number;
  readonly answerMs: number;
}

export const usualUsbipLimits: UsbipLimits = { connectMs: 4000, answerMs: 4000 };

const empty = new Uint8Array(0);

/** A device that was handed out, with the connection that its transfers go over. */
export interface ImportedDevice {
  readonly socket: Socket;
  readonly record: UsbipDevice;
  /** What came behind the reply already. */
  readonly rest: Uint8Array;
}

/** @throws AppError `no-such-device`, `timed-out`, `device-failed` */
export async function fetchDeviceList(
  server: UsbipServer,
  limits: UsbipLimits = usualUsbipLimits,
): Promise<readonly UsbipListedDevice[]> {
  const socket = await connectTo(server, limits);
  try {
    const reader = new DeviceListReplyReader();
    const { value } = await ask(socket, encodeOpHeader(opCodes.requestDeviceList), {
      server,
      limits,
      read: (bytes) => ({ reply: reader.read(bytes), rest: empty }),
      refused: (status) => listRefused(server, status),
    });
    return value;
  } finally {
    socket.destroy();
  }
}

/** @throws AppError `no-such-device`, `device-busy`, `timed-out`, `device-failed` */
export async function importDevice(
  server: UsbipServer,
  busId: string,
  limits: UsbipLimits = usualUsbipLimits,
): Promise<ImportedDevice> {
  const socket = await connectTo(server, limits);
  try {
    const reader = new ImportReplyReader();
    const { value, rest } = await ask(socket, encodeImportRequest(busId), {
      server,
      limits,
      read: (bytes) => {
        const reply = reader.read(bytes);
        return { reply, rest: bytes.subarray(reader.consumed) };
      },
      refused: (status) => importRefused(server, busId, status),
    });
    return { socket, record: value, rest };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function connectTo(server: UsbipServer, limits: UsbipLimits): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.host, port: server.port, noDelay: true });
    const fail = (code: string, cause?: unknown): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(connectFailure(server, code, cause));
    };
    const timer = setTimeout(() => fail(`no answer within ${limits.connectMs / 1000} s`), limits.connectMs);
    const handleError = (error: NodeJS.ErrnoException): void => fail(codeOf(error), error);
    socket.once('error', handleError);
    socket.once('connect', () => {
      clearTimeout(timer);
      // An error between two listeners is told by the close that follows it.
      socket.on('error', () => undefined);
      socket.off('error', handleError);
      resolve(socket);
    });
  });
}

/** Node's name of what went wrong. Several addresses that were tried in vain have one each: the first one counts. */
export function codeOf(error: NodeJS.ErrnoException): string {
  const errors: unknown = error instanceof AggregateError ? error.errors : undefined;
  const first = Array.isArray(errors) ? (errors[0] as NodeJS.ErrnoException | undefined) : undefined;
  return error.code ?? first?.code ?? error.message;
}

interface Question<T> {
  readonly server: UsbipServer;
  readonly limits: UsbipLimits;
  /** Takes the next bytes; `rest` is what lies beyond a complete reply. */
  read(bytes: Uint8Array): { readonly reply: OpReply<T>; readonly rest: Uint8Array };
  refused(status: number): AppError;
}

/** Sends a question and waits for the whole answer; the socket is paused then. */
function ask<T>(
  socket: Socket,
  request: Uint8Array,
  question: Question<T>,
): Promise<{ value: T; rest: Uint8Array }> {
  const { server, limits } = question;
  return new Promise((resolve, reject) => {
    const finish = (act: () => void): void => {
      clearTimeout(timer);
      socket.off('data', handleData).off('close', handleClose).off('error', handleError);
      act();
    };
    const fail = (error: AppError): void => finish(() => reject(error));
    const timer = setTimeout(() => fail(noAnswer(server)), limits.answerMs);
    const handleClose = (): void => fail(hungUp(server));
    const handleError = (error: NodeJS.ErrnoException): void => fail(hungUp(server, error));
    const handleData = (bytes: Uint8Array): void => {
      const { reply, rest } = question.read(bytes);
      switch (reply.kind) {
        case 'more':
          return;
        case 'done':
          socket.pause();
          finish(() => resolve({ value: reply.value, rest }));
          return;
        case 'refused':
          fail(question.refused(reply.status));
          return;
        case 'other-version':
          fail(otherVersion(server, reply.version));
          return;
        case 'nonsense':
          fail(noUsbipServer(server));
          return;
      }
    };
    socket.on('data', handleData).on('close', handleClose).on('error', handleError);
    socket.write(request);
  });
}
