import type { PowerChange } from './engine-service.ts';

/** From the main process to the engine's process. */
export type ToEngineProcess =
  /** With one port: a page that wants to talk to the engine. */
  | { readonly type: 'client' }
  | { readonly type: 'power'; readonly change: PowerChange }
  /** Give every device back, close every recording, and end. */
  | { readonly type: 'close' };

/** From the engine's process to the main process. */
export type FromEngineProcess =
  | { readonly type: 'ready' }
  /** It could not start, and ends. */
  | { readonly type: 'failed'; readonly reason: string };

/** Channels between the preload script and the main process. */
export const connectChannel = 'queuescope:connect';
export const statusChannel = 'queuescope:status';
export const portChannel = 'queuescope:port';
