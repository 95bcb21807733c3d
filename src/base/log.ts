/** How much a line matters. `trace` is the only level allowed on the path of a frame, and it is off by default. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** Where lines go. Fields are plain values; nothing that identifies a person or a SIM. */
export interface Log {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** Drops every line. */
export const silentLog: Log = {
  log() {},
};
