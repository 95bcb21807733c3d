import { pino } from 'pino';
import type { Log, LogLevel } from '../base/log.ts';

const levels: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error'];

/** The level that a text names; anything else is `error`. */
export function logLevelOf(text: string | undefined): LogLevel {
  return levels.find((level) => level === text) ?? 'error';
}

/**
 * A log on standard error, one JSON line an entry: standard output belongs to results.
 * Written synchronously, so that the last line before a crash is there.
 */
export function createPinoLog(level: LogLevel): Log {
  const logger = pino({ name: 'queuescope', level, base: null }, pino.destination({ dest: 2, sync: true }));
  return {
    log(entryLevel, message, fields) {
      logger[entryLevel](fields ?? {}, message);
    },
  };
}
