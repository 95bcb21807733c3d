import { Emitter } from '../base/emitter.ts';
import type { Port } from './port.ts';

/** What is used of a page's `MessagePort`, so that this file needs no DOM. */
export interface PageMessagePort {
  postMessage(message: unknown): void;
  start(): void;
  close(): void;
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: 'close', listener: () => void): void;
}

/**
 * A page's end of a message channel as a {@link Port}. Messages wait in the channel until somebody listens. The channel
 * does not tell what is on its way, so `bufferedBytes` is 0 and the server's credit is what holds it back.
 */
export function portOfPageMessagePort(channelEnd: PageMessagePort): Port {
  const messages = new Emitter<string | ArrayBuffer>();
  const closed = new Emitter<void>();
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    closed.emit();
  };
  channelEnd.addEventListener('message', ({ data }) => {
    if (open && (typeof data === 'string' || data instanceof ArrayBuffer)) messages.emit(data);
  });
  channelEnd.addEventListener('close', end);
  return {
    post(message) {
      if (open) channelEnd.postMessage(message);
    },
    bufferedBytes: 0,
    onMessage(listener) {
      const dispose = messages.event(listener);
      channelEnd.start();
      return dispose;
    },
    onClose: closed.event,
    close() {
      channelEnd.close();
      end();
    },
  };
}
