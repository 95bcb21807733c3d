import koffi from 'koffi';

/** The few system calls that a TAP interface needs and Node does not offer, on Linux (glibc and musl). */
export interface TunCalls {
  /** ioctl(2). @returns 0, or minus the error number */
  ioctl(fd: number, request: number, argument: Buffer): number;
  /** read(2). @returns bytes read, or minus the error number */
  read(fd: number, buffer: Uint8Array, length: number): number;
  /** write(2). @returns bytes written, or minus the error number */
  write(fd: number, buffer: Uint8Array, length: number): number;
  /** poll(2) for readability on another thread; `done` gets true if there is something to read. */
  waitReadable(fd: number, timeoutMs: number, done: (readable: boolean) => void): void;
}

/** Error numbers that matter here (Linux). */
export const errorNumbers = { perm: 1, noEntry: 2, again: 11, access: 13, busy: 16, invalid: 22 } as const;

const pollIn = 0x001;

/** Binds the calls; done once, when a TAP is first opened. @throws if this is no Linux with a C library */
export function loadTunCalls(): TunCalls {
  const library = koffi.load(null);
  const pollFd = koffi.struct({ fd: 'int', events: 'short', revents: 'short' });
  const ioctl = library.func('ioctl', 'int', ['int', 'uint64_t', 'void *']);
  const read = library.func('read', 'int64_t', ['int', 'void *', 'uint64_t']);
  const write = library.func('write', 'int64_t', ['int', 'const void *', 'uint64_t']);
  const poll = library.func('poll', 'int', [koffi.inout(koffi.pointer(pollFd)), 'uint64_t', 'int']);
  const orError = (result: number): number => (result < 0 ? -koffi.errno() : result);
  return {
    ioctl: (fd, request, argument) => orError(Number(ioctl(fd, request, argument))),
    read: (fd, buffer, length) => orError(Number(read(fd, buffer, length))),
    write: (fd, buffer, length) => orError(Number(write(fd, buffer, length))),
    waitReadable(fd, timeoutMs, done) {
      const wanted = { fd, events: pollIn, revents: 0 };
      poll.async(wanted, 1, timeoutMs, (_error: unknown, count: number) => {
        done(count > 0 && (wanted.revents & pollIn) !== 0);
      });
    },
  };
}
