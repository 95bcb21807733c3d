import type { RawData, WebSocket } from 'ws';
import { Emitter } from '../../base/emitter.ts';
import type { Port } from '../../rpc/port.ts';

/** The server's end of a WebSocket as a {@link Port}. */
export class WebSocketPort implements Port {
  readonly #socket: WebSocket;
  readonly #messages = new Emitter<string | ArrayBuffer>();
  readonly #closed = new Emitter<void>();
  readonly onMessage = this.#messages.event;
  readonly onClose = this.#closed.event;
  #open = true;

  /** @param socket open, with `binaryType` still at its default */
  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) =>
      this.#messages.emit(isBinary ? arrayBufferOf(data) : textOf(data)),
    );
    socket.on('close', () => this.#end());
    // `close` follows; what went wrong (a frame too large, broken UTF-8) is in its code.
    socket.on('error', () => {});
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  post(message: string | ArrayBuffer): void {
    if (this.#open) this.#socket.send(message);
  }

  close(): void {
    this.#socket.close(1000);
    this.#end();
  }

  #end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#closed.emit();
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
}

function textOf(data: RawData): string {
  return bytesOf(data).toString('utf8');
}

/** A copy: ws' buffer is a window into a larger one, and starts anywhere in it. */
function arrayBufferOf(data: RawData): ArrayBuffer {
  const bytes = bytesOf(data);
  const copy = new ArrayBuffer(bytes.byteLength);
  new Uint8Array(copy).set(bytes);
  return copy;
}
