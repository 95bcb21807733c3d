import { Emitter } from '../base/emitter.ts';
import type { Port } from './port.ts';

/** What is used of a page's `WebSocket`, so that this file needs no DOM. */
export interface PageWebSocket {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(message: string | ArrayBuffer): void;
  close(): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'open' | 'close', listener: () => void): void;
}

const readyStateOpen = 1;
const maxEarlyMessages = 64;

/**
 * A page's socket as a {@link Port}. What is posted before the socket is open waits for that; a socket that never opens
 * closes, and the port with it.
 */
export function portOfPageWebSocket(socket: PageWebSocket): Port {
  const messages = new Emitter<string | ArrayBuffer>();
  const closed = new Emitter<void>();
  let early: (string | ArrayBuffer)[] | undefined = [];
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    early = undefined;
    closed.emit();
  };
  const flush = (): void => {
    for (const message of early ?? []) socket.send(message);
    early = undefined;
  };
  socket.binaryType = 'arraybuffer';
  socket.addEventListener('message', ({ data }) => {
    if (open && (typeof data === 'string' || data instanceof ArrayBuffer)) messages.emit(data);
  });
  socket.addEventListener('close', end);
  if (socket.readyState === readyStateOpen) flush();
  else socket.addEventListener('open', flush);
  return {
    post(message) {
      if (!open) return;
      if (early === undefined) socket.send(message);
      else if (early.length < maxEarlyMessages) early.push(message);
      else {
        socket.close();
        end();
      }
    },
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
    onMessage: messages.event,
    onClose: closed.event,
    close() {
      socket.close();
      end();
    },
  };
}
