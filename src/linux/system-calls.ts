import koffi from 'koffi';

/** Bytes that a call reads or writes; undefined: none (a null pointer). */
type Memory = Uint8Array | undefined;

/**
 * The system calls that Node does not offer, on Linux (glibc and musl). What they return is never negative but for a
 * failure, which is minus the error number.
 */
export interface SystemCalls {
  /** ioctl(2) whose argument is memory. */
  ioctl(fd: number, request: number, argument: Memory): number;
  /** ioctl(2) whose argument is a number: an address ({@link addressOf}) or a value. */
  ioctlNumber(fd: number, request: number, argument: number): number;
  /** ioctl(2) that may take long, on another thread. `argument` is kept until then, and must not be touched. */
  ioctlBehind(fd: number, request: number, argument: Memory, done: (result: number) => void): void;
  /** read(2). */
  read(fd: number, buffer: Uint8Array, length: number): number;
  /** write(2). */
  write(fd: number, buffer: Uint8Array, length: number): number;
  /** ppoll(2). @param timeout a `struct timespec`: seconds and nanoseconds, 64 bits each */
  poll(files: Uint8Array, count: number, timeout: Uint8Array): number;
  /** poll(2) on another thread. `files` is kept until then, and must not be touched. */
  pollBehind(files: Uint8Array, count: number, timeoutMs: number, done: (result: number) => void): void;
  /** eventfd(2): a file that can be read once something was written to it; neither ever waits. */
  eventFile(): number;
  /** Where the memory begins. It stays there for as long as its `ArrayBuffer` lives, which is the caller's affair. */
  addressOf(memory: Uint8Array): number;
}

/** Error numbers that matter here (Linux). */
export const errorNumbers = {
  perm: 1,
  noEntry: 2,
  io: 5,
  again: 11,
  noMemory: 12,
  access: 13,
  busy: 16,
  noDevice: 19,
  invalid: 22,
  pipe: 32,
  noData: 61,
  time: 62,
  protocol: 71,
  overflow: 75,
  illegalSequence: 84,
  shutdown: 108,
  timedOut: 110,
} as const;

/** `struct pollfd`: the file (32 bits), the events wanted and those that came (16 bits each). */
export const pollFileBytes = 8;

/** What can be waited for, and what comes unasked. */
export const pollEvents = { in: 0x001, out: 0x004, error: 0x008, hangUp: 0x010 } as const;

/** EFD_NONBLOCK, EFD_CLOEXEC. */
const eventFlags = 0o4000 | 0o2000000;

/** Binds the calls; done once for whoever needs them. @throws if this is no Linux with a C library */
export function loadSystemCalls(): SystemCalls {
  const library = koffi.load(null);
  const ioctl = library.func('ioctl', 'int', ['int', 'uint64_t', 'void *']);
  const ioctlNumber = library.func('ioctl', 'int', ['int', 'uint64_t', 'uint64_t']);
  const read = library.func('read', 'int64_t', ['int', 'void *', 'uint64_t']);
  const write = library.func('write', 'int64_t', ['int', 'const void *', 'uint64_t']);
  const poll = library.func('poll', 'int', ['void *', 'uint64_t', 'int']);
  const ppoll = library.func('ppoll', 'int', ['void *', 'uint64_t', 'void *', 'void *']);
  const eventfd = library.func('eventfd', 'int', ['uint', 'int']);
  // Copies nothing; its result is the first argument, which is how the address comes to be known.
  const memcpy = library.func('memcpy', 'uint64_t', ['void *', 'const void *', 'uint64_t']);
  const orError = (result: number): number => (result < 0 ? -koffi.errno() : result);
  // Memory that another thread works on: nothing else may hold it, and what nothing holds is freed.
  const held = new Set<Uint8Array>();
  const ended = (memory: Memory, error: unknown, result: number): number => {
    if (memory !== undefined) held.delete(memory);
    return error === null || error === undefined ? orError(result) : -errorNumbers.io;
  };
  return {
    ioctl: (fd, request, argument) => orError(ioctl(fd, request, argument) as number),
    ioctlNumber: (fd, request, argument) => orError(ioctlNumber(fd, request, argument) as number),
    ioctlBehind(fd, request, argument, done) {
      if (argument !== undefined) held.add(argument);
      ioctl.async(fd, request, argument, (error: unknown, result: number) => {
        done(ended(argument, error, result));
      });
    },
    read: (fd, buffer, length) => orError(read(fd, buffer, length) as number),
    write: (fd, buffer, length) => orError(write(fd, buffer, length) as number),
    poll: (files, count, timeout) => orError(ppoll(files, count, timeout, null) as number),
    pollBehind(files, count, timeoutMs, done) {
      held.add(files);
      poll.async(files, count, timeoutMs, (error: unknown, result: number) => {
        done(ended(files, error, result));
      });
    },
    eventFile: () => orError(eventfd(0, eventFlags) as number),
    addressOf: (memory) => Number(memcpy(memory, memory, 0)),
  };
}
