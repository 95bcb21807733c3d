import { closeSync } from 'node:fs';
import { pollEvents, pollFileBytes, type SystemCalls } from './system-calls.ts';

/** A wait on another thread looks so often whether it is still wanted: it keeps the process from ending meanwhile. */
const behindMs = 200;
const timespecBytes = 16;
/** A negative number is passed over. */
const noFile = -1;
const usPerSecond = 1_000_000;
const nsPerUs = 1000;

/** What poll(2) says of a file: a sum of {@link pollEvents}. */
export type ReadyEvents = number;

/** One file that is waited for. Not at first: {@link arm} begins it. */
export interface FileWatch {
  /** Waits from now on. */
  arm(): void;
  /** Waits no longer. */
  disarm(): void;
  /** Ends the watch and closes the file: once no thread waits for it any more, since its number is then another file's. */
  close(): void;
}

class WatchedFile implements FileWatch {
  readonly fd: number;
  readonly events: number;
  readonly ready: (events: ReadyEvents) => void;
  readonly #owner: ReadyFiles;
  /** Where it stands among the files that are polled; -1: no longer. */
  index = -1;
  armed = false;

  constructor(owner: ReadyFiles, fd: number, events: number, ready: (events: ReadyEvents) => void) {
    this.#owner = owner;
    this.fd = fd;
    this.events = events;
    this.ready = ready;
  }

  arm(): void {
    if (this.armed || this.index < 0) return;
    this.armed = true;
    this.#owner.handleArmed(this);
  }

  disarm(): void {
    if (!this.armed) return;
    this.armed = false;
    this.#owner.handleDisarmed(this);
  }

  close(): void {
    this.#owner.remove(this);
  }
}

/**
 * Waits for files that Node's own event loop cannot wait for: nodes of USB devices and TAP interfaces.
 *
 * There are two ways. *Behind*: another thread waits, and the event loop hears of it, which costs two changes of thread each
 * time (40 µs natively, ten times that in an emulated machine). *Briefly*: the caller itself waits, for a fraction of a
 * millisecond, and what is ready is dealt with at once. Who moves frames does the latter as long as they come one after
 * another, and the former once it becomes quiet (as network drivers do with polling and interrupts).
 */
export class ReadyFiles {
  readonly #calls: SystemCalls;
  readonly #nowUs: () => number;
  #files: readonly WatchedFile[] = [];
  /** The same as poll(2) wants them. Those that are not armed have no number there, and are passed over. */
  #pollFiles = new PollFiles(0);
  /** A `struct timespec`. */
  readonly #timeout = new Uint32Array(timespecBytes / 4);
  readonly #timeoutBytes = new Uint8Array(this.#timeout.buffer);
  #lastReadyUs = Number.NEGATIVE_INFINITY;
  /** Somebody waits briefly, over and over, so that no thread need wait. */
  #attended = false;
  /** Files that a thread waits for at present, the one that wakes it last. */
  #behind: readonly WatchedFile[] | undefined;
  #wakeFile: number | undefined;
  readonly #toClose: WatchedFile[] = [];

  constructor(calls: SystemCalls, nowUs: () => number) {
    this.#calls = calls;
    this.#nowUs = nowUs;
  }

  /**
   * @param events what to wait for, a sum of {@link pollEvents}; errors and the end of a file come unasked
   * @param ready called each time, for as long as the file is ready and the watch armed; must not throw
   */
  watch(fd: number, events: number, ready: (events: ReadyEvents) => void): FileWatch {
    const file = new WatchedFile(this, fd, events, ready);
    this.#setFiles([...this.#files, file]);
    return file;
  }

  /** When something was last ready. */
  get lastReadyUs(): number {
    return this.#lastReadyUs;
  }

  /**
   * Waits until something is ready, `limitUs` at most (0: only looks), and deals with it. Until {@link waitBehind} is
   * called, the caller has to come back here.
   * @returns whether anything was ready
   */
  waitBriefly(limitUs: number): boolean {
    this.#attended = true;
    return this.#wait(limitUs);
  }

  /** From here on another thread waits. */
  waitBehind(): void {
    this.#attended = false;
    this.#startBehind();
  }

  // ---- called by the watches ----

  handleArmed(file: WatchedFile): void {
    this.#pollFiles.set(file);
    if (this.#attended) return;
    if (this.#behind === undefined) this.#startBehind();
    else this.#wake();
  }

  handleDisarmed(file: WatchedFile): void {
    // A thread that still waits for the file finds it ready once too often, which is looked at anew.
    this.#pollFiles.set(file);
  }

  remove(file: WatchedFile): void {
    if (file.index < 0) return;
    file.armed = false;
    file.index = -1;
    this.#setFiles(this.#files.filter((other) => other !== file));
    if (this.#behind?.includes(file) === true) {
      this.#toClose.push(file);
      this.#wake();
    } else {
      closeSync(file.fd);
    }
    if (this.#files.length === 0 && this.#behind === undefined) this.#closeWakeFile();
  }

  #setFiles(files: readonly WatchedFile[]): void {
    this.#files = files;
    // Not written over: a call further up may be going through the ones before.
    this.#pollFiles = new PollFiles(files.length);
    for (const [index, file] of files.entries()) {
      file.index = index;
      this.#pollFiles.set(file);
    }
  }

  // ---- waiting ----

  #wait(limitUs: number): boolean {
    const files = this.#files;
    const pollFiles = this.#pollFiles;
    if (files.length === 0 && limitUs === 0) return false;
    const seconds = Math.floor(limitUs / usPerSecond);
    this.#timeout[0] = seconds;
    this.#timeout[2] = (limitUs - seconds * usPerSecond) * nsPerUs;
    if (this.#calls.poll(pollFiles.bytes, files.length, this.#timeoutBytes) <= 0) return false;
    this.#lastReadyUs = this.#nowUs();
    for (let i = 0; i < files.length; i++) {
      const events = pollFiles.eventsOf(i);
      const file = files[i];
      // An earlier one may have ended the wait for this one.
      if (events !== 0 && file?.armed === true) file.ready(events);
    }
    return true;
  }

  #startBehind(): void {
    if (this.#behind !== undefined) return;
    const files = this.#files.filter(({ armed }) => armed);
    if (files.length === 0) return;
    this.#wakeFile ??= this.#calls.eventFile();
    const pollFiles = new PollFiles(files.length + 1);
    for (const [index, { fd, events }] of files.entries()) pollFiles.write(index, fd, events);
    pollFiles.write(files.length, this.#wakeFile, pollEvents.in);
    this.#behind = files;
    this.#calls.pollBehind(pollFiles.bytes, files.length + 1, behindMs, () => this.#handleBehind());
  }

  #handleBehind(): void {
    this.#behind = undefined;
    if (this.#wakeFile !== undefined) this.#calls.read(this.#wakeFile, Buffer.alloc(8), 8);
    for (const file of this.#toClose.splice(0)) closeSync(file.fd);
    if (this.#files.length === 0) {
      this.#closeWakeFile();
      return;
    }
    if (this.#attended) return;
    this.#wait(0);
    if (!this.#isAttended()) this.#startBehind();
  }

  /** Read through a method: what was ready may have begun to wait briefly. */
  #isAttended(): boolean {
    return this.#attended;
  }

  #wake(): void {
    if (this.#wakeFile === undefined) return;
    const one = Buffer.alloc(8);
    one[0] = 1;
    this.#calls.write(this.#wakeFile, one, one.length);
  }

  #closeWakeFile(): void {
    if (this.#wakeFile !== undefined) closeSync(this.#wakeFile);
    this.#wakeFile = undefined;
  }
}

/** An array of `struct pollfd`. */
class PollFiles {
  readonly bytes: Uint8Array;
  readonly #numbers: Int32Array;
  readonly #events: Int16Array;

  constructor(count: number) {
    this.bytes = new Uint8Array(count * pollFileBytes);
    this.#numbers = new Int32Array(this.bytes.buffer);
    this.#events = new Int16Array(this.bytes.buffer);
  }

  set({ index, armed, fd, events }: WatchedFile): void {
    if (index >= 0) this.write(index, armed ? fd : noFile, events);
  }

  write(index: number, fd: number, events: number): void {
    this.#numbers[index * 2] = fd;
    this.#events[index * 4 + 2] = events;
  }

  /** What the last poll found. */
  eventsOf(index: number): ReadyEvents {
    return this.#events[index * 4 + 3] ?? 0;
  }
}
