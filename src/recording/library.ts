import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AppError, asAppError } from '../base/errors.ts';
import { fileFailure } from './file-failure.ts';
import { RecordingReader } from './recording-reader.ts';
import { recoverRecording, type RecoverOutcome } from './recover.ts';
import { recordingExtension } from './session-schema.ts';
import { recordingSizeBytes } from './session-store.ts';

/**
 * - `recording`: something was written to it a moment ago; `closed`, `failed`, `recovered`: as it ended
 * - `interrupted`: it has no end and nothing is written to it any more; {@link RecordingLibrary.recover} repairs it
 * - `damaged`: it cannot be read; `reason` says why
 */
export type RecordingState = 'recording' | 'closed' | 'failed' | 'recovered' | 'interrupted' | 'damaged';

/** One line of the list of recordings. */
export interface RecordingInfo {
  /** File name without folder. */
  readonly id: string;
  readonly fileName: string;
  readonly path: string;
  readonly state: RecordingState;
  /** Empty where the file is damaged. */
  readonly deviceId: string;
  readonly deviceName: string;
  /** ISO 8601; of a damaged file, when it was last changed. */
  readonly startedAt: string;
  readonly durationUs: number;
  readonly sizeBytes: number;
  readonly reason?: string;
}

/** A recording that was written to within this time is taken for one that still is: rows come every half second. */
const freshMs = 10_000;

/** The recordings in one folder. The folder is made when the first recording is. */
export class RecordingLibrary {
  readonly folder: string;
  readonly #nowMs: () => number;
  /** What was read of each file, and of which state of the file: only one that has changed is read again. */
  readonly #known = new Map<string, { readonly stamp: string; readonly info: RecordingInfo }>();

  /** @param nowMs wall clock, milliseconds since 1970 */
  constructor(folder: string, nowMs: () => number = Date.now) {
    this.folder = folder;
    this.#nowMs = nowMs;
  }

  /**
   * A path for a new recording, named for its time and device: `20251106-143005-rm520n-gl.qscope`. Makes the folder.
   * @param startedAt ISO 8601; the name has this time as it stands there
   * @throws AppError `file-failed` if the folder cannot be made
   */
  newPath(deviceName: string, startedAt: string): string {
    try {
      mkdirSync(this.folder, { recursive: true });
    } catch (error) {
      throw fileFailure('created', this.folder, error);
    }
    const stem = `${timeForName(startedAt)}-${nameForFile(deviceName)}`;
    for (let copy = 1; ; copy++) {
      const path = join(this.folder, `${stem}${copy === 1 ? '' : `-${copy}`}${recordingExtension}`);
      if (statSync(path, { throwIfNoEntry: false }) === undefined) return path;
    }
  }

  /** All recordings, newest first. A file that cannot be read is listed as damaged; nothing here throws. */
  list(): RecordingInfo[] {
    const infos = this.#fileNames().map((fileName) => this.#info(fileName));
    const present = new Set(infos.map((info) => info.fileName));
    for (const fileName of this.#known.keys()) if (!present.has(fileName)) this.#known.delete(fileName);
    return infos.toSorted(
      (a, b) => timeMs(b.startedAt) - timeMs(a.startedAt) || compare(a.fileName, b.fileName),
    );
  }

  /** @throws AppError `file-failed` if there is no such recording or it cannot be read */
  open(id: string): RecordingReader {
    return RecordingReader.open(this.path(id));
  }

  /** @throws AppError `file-failed` if it cannot be repaired */
  recover(id: string): RecoverOutcome {
    return recoverRecording(this.path(id));
  }

  /**
   * Repairs every recording that a killed process left behind; to be called once at the start. Answers with the ids of
   * those that were recovered; one that cannot be repaired stays as it is and is listed as damaged or interrupted.
   */
  recoverAll(): string[] {
    return this.list()
      .filter((info) => info.state === 'interrupted' || info.state === 'recording')
      .filter((info) => {
        try {
          return recoverRecording(info.path) === 'recovered';
        } catch {
          return false;
        }
      })
      .map((info) => info.id);
  }

  /** Deletes a recording. @throws AppError `file-failed` if it is being recorded or cannot be deleted */
  remove(id: string): void {
    const path = this.path(id);
    if (this.#info(id).state === 'recording') {
      throw new AppError('file-failed', `${id} is still being recorded`, {
        details: { path, code: 'in-use' },
        remedy: 'Stop the session first.',
      });
    }
    try {
      rmSync(path);
      for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
    } catch (error) {
      throw fileFailure('written', path, error);
    }
  }

  /** The file of an id. @throws AppError `file-failed` for an id that points out of the folder */
  path(id: string): string {
    if (id !== basename(id) || !id.endsWith(recordingExtension)) {
      throw new AppError('file-failed', `There is no recording ${id}`, {
        details: { code: 'ENOENT' },
        remedy: 'Choose one from the list of recordings.',
      });
    }
    return join(this.folder, id);
  }

  #fileNames(): string[] {
    try {
      return readdirSync(this.folder).filter((name) => name.endsWith(recordingExtension));
    } catch {
      // No folder, or one that may not be read: as good as empty.
      return [];
    }
  }

  #info(fileName: string): RecordingInfo {
    const path = join(this.folder, fileName);
    const changedMs = lastChangeMs(path);
    const sizeBytes = recordingSizeBytes(path);
    const stamp = `${changedMs} ${sizeBytes}`;
    const known = this.#known.get(fileName);
    const info = known?.stamp === stamp ? known.info : readInfo(path, fileName, changedMs, sizeBytes);
    this.#known.set(fileName, { stamp, info });
    // Not kept with the rest: it turns by time alone.
    const silent = info.state === 'recording' && this.#nowMs() - changedMs > freshMs;
    return silent ? { ...info, state: 'interrupted' } : info;
  }
}

function readInfo(path: string, fileName: string, changedMs: number, sizeBytes: number): RecordingInfo {
  const common = { id: fileName, fileName, path, sizeBytes };
  let reader: RecordingReader | undefined;
  try {
    reader = RecordingReader.open(path);
    const meta = reader.meta();
    const { device } = reader.session('end');
    return {
      ...common,
      state: meta.state,
      deviceId: device.id,
      deviceName: device.name,
      startedAt: meta.startedAt,
      durationUs: reader.lastTimeUs(),
      ...(meta.reason !== undefined && { reason: meta.reason }),
    };
  } catch (error) {
    const reason = asAppError(error).message;
    const startedAt = new Date(changedMs).toISOString();
    return { ...common, state: 'damaged', deviceId: '', deviceName: '', startedAt, durationUs: 0, reason };
  } finally {
    reader?.close();
  }
}

/** When the file or its WAL was last written to, milliseconds since 1970. */
function lastChangeMs(path: string): number {
  let latestMs = 0;
  for (const suffix of ['', '-wal']) {
    const changedMs = statSync(`${path}${suffix}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (changedMs > latestMs) latestMs = changedMs;
  }
  return latestMs;
}

/** Milliseconds since 1970; 0 for what is no time, so that the order stays one. */
function timeMs(iso: string): number {
  return Date.parse(iso) || 0;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `2025-11-06T14:30:05.123+01:00` → `20251106-143005`. */
function timeForName(startedAt: string): string {
  const digits = startedAt.replaceAll(/\D/g, '');
  return `${digits.slice(0, 8)}-${digits.slice(8, 14)}`;
}

/** What any file system takes: lower-case letters, digits and hyphens, not too long. */
function nameForFile(deviceName: string): string {
  const name = deviceName
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, '');
  return name === '' ? 'device' : name;
}
