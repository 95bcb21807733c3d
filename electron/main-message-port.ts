import type { MessagePortMain } from 'electron';
import { Emitter } from '../src/base/emitter.ts';
import type { Port } from '../src/rpc/port.ts';

/**
 * A channel's end in the engine's process as a {@link Port}. Messages wait in the channel until somebody listens. What
 * is on its way cannot be told, so `bufferedBytes` is 0 and the server's credit is what holds it back.
 */
export function portOfMainMessagePort(
  channelEnd: Pick<MessagePortMain, 'postMessage' | 'start' | 'close' | 'on'>,
): Port {
  const messages = new Emitter<string | ArrayBuffer>();
  const closed = new Emitter<void>();
  let open = true;
  const end = (): void => {
    if (!open) return;
    open = false;
    closed.emit();
  };
  channelEnd.on('message', ({ data }: { data: unknown }) => {
    if (open && (typeof data === 'string' || data instanceof ArrayBuffer)) messages.emit(data);
  });
  channelEnd.on('close', end);
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
