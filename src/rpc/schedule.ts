import type { Dispose } from '../base/emitter.ts';

/** Calls `action` once, `delayUs` microseconds from now; the disposer keeps it from being called. */
export type Schedule = (delayUs: number, action: () => void) => Dispose;
