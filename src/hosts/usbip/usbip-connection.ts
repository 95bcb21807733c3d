import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { IntervalValues } from '../../engine/interval-values.ts';
import { PacedLoop } from '../../engine/paced-loop.ts';
import { PromptTicks } from '../../engine/paced-ticks.ts';
import type { RunNow } from '../../engine/tap-bridge.ts';
import type { RunningSimDevice } from '../../sim/create-sim-device.ts';
import type { UsbipExports } from '../../sim/usbip-exports.ts';
import { UsbipServerSession } from '../../sim/usbip-server.ts';

/** Who connects has so long to say what for. */
const questionLimitMs = 10_000;
/** Between two looks at the socket while something is about to be due. */
const napUs = 200;
/** Until a peer that says nothing is asked whether it is there. */
const keepAliveMs = 10_000;
/** A peer that takes no answers gets no more work done once so much waits for it. */
const maxUnsentBytes = 8 * 1024 * 1024;
/** How long the last bytes may take to leave. */
const farewellMs = 2000;

/** A device was taken, or given back. */
export type UsbipEvent =
  | { readonly type: 'attached'; readonly busId: string; readonly peer: string }
  | {
      readonly type: 'detached';
      readonly busId: string;
      readonly peer: string;
      readonly seconds: number;
      readonly submitted: number;
      readonly refused: number;
      readonly completed: number;
      readonly failed: number;
      readonly unlinked: number;
      /** How much later than in the simulation things happened. */
      readonly lateP50Us: number;
      readonly lateP95Us: number;
      readonly lateMaxUs: number;
      /** Real time that the simulation could not keep up with. */
      readonly skippedUs: number;
    };

export interface UsbipConnectionOptions {
  readonly socket: Socket;
  readonly exports: UsbipExports;
  readonly clock: Clock;
  readonly log: Log;
  readonly onEvent: (event: UsbipEvent) => void;
  /** A device has been taken; `run` does something in its simulated time. */
  readonly onDevice?: UsbipDeviceHook | undefined;
  readonly onClosed: () => void;
}

export type UsbipDeviceHook = (device: RunningSimDevice, run: RunNow) => void;

/** One connection of the USB/IP server: a socket, a session, and the simulated time that goes with it. */
export class UsbipConnection {
  readonly #options: UsbipConnectionOptions;
  readonly #socket: Socket;
  readonly #peer: string;
  readonly #session: UsbipServerSession;
  readonly #loop: PacedLoop;
  readonly #late = new IntervalValues();
  readonly #questionTimer: NodeJS.Timeout;
  #attached: { readonly busId: string; readonly sinceUs: number } | undefined;
  #corked = false;
  #closed = false;

  constructor(options: UsbipConnectionOptions) {
    const { socket, exports, clock, log } = options;
    this.#options = options;
    this.#socket = socket;
    this.#peer = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`;
    this.#session = new UsbipServerSession(exports);
    this.#loop = new PacedLoop(
      clock,
      (error) => {
        log.log('error', 'a simulated device failed', { peer: this.#peer, error: String(error) });
        this.close();
      },
      new PromptTicks(napUs),
      (us) => this.#late.add(us),
    );
    this.#loop.add({
      poll: (nowUs) => {
        this.#session.poll(nowUs);
        this.#flush();
      },
      pollAtUs: () => this.#session.pollAtUs(),
    });
    this.#questionTimer = setTimeout(() => this.close(), questionLimitMs);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMs);
    socket.on('data', (bytes) => this.#handleBytes(bytes));
    socket.on('drain', () => socket.resume());
    socket.on('error', (error) =>
      log.log('info', 'a USB/IP connection broke', { peer: this.#peer, error: error.message }),
    );
    socket.on('close', () => this.close());
  }

  /** Gives the device back and ends the connection. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#questionTimer);
    this.#loop.close();
    this.#tellDetached();
    this.#session.close();
    this.#socket.destroy();
    this.#options.onClosed();
  }

  #handleBytes(bytes: Uint8Array): void {
    this.#loop.run((nowUs) => {
      this.#session.handleBytes(bytes, nowUs);
      this.#flush();
    });
    if (this.#attached === undefined) this.#tellAttached();
  }

  /** What comes within a turn of the event loop leaves together. */
  #flush(): void {
    const bytes = this.#session.takeOutput();
    if (bytes !== undefined && !this.#closed) {
      if (!this.#corked) {
        this.#corked = true;
        this.#socket.cork();
        process.nextTick(() => {
          this.#corked = false;
          this.#socket.uncork();
        });
      }
      this.#socket.write(bytes);
      if (this.#socket.writableLength > maxUnsentBytes) this.#socket.pause();
    }
    if (this.#session.finished && !this.#closed) this.#finish();
  }

  /** Lets the last bytes leave. */
  #finish(): void {
    const { failure } = this.#session;
    if (failure !== undefined) {
      this.#options.log.log('warn', `a USB/IP peer sent ${failure}`, { peer: this.#peer });
    }
    this.#socket.end();
    setTimeout(() => this.close(), farewellMs).unref();
  }

  #tellAttached(): void {
    const { attached } = this.#session;
    if (attached === undefined) return;
    clearTimeout(this.#questionTimer);
    const { busId } = attached.record;
    this.#attached = { busId, sinceUs: this.#options.clock.nowUs() };
    this.#options.onDevice?.(attached.device, (action) => this.#loop.run(action));
    this.#options.onEvent({ type: 'attached', busId, peer: this.#peer });
  }

  #tellDetached(): void {
    const counters = this.#session.urbs?.counters;
    if (this.#attached === undefined || counters === undefined) return;
    const { busId, sinceUs } = this.#attached;
    const { submitted, refused, completed, failed, unlinked } = counters;
    this.#late.take();
    this.#options.onEvent({
      type: 'detached',
      busId,
      peer: this.#peer,
      seconds: (this.#options.clock.nowUs() - sinceUs) / 1e6,
      submitted,
      refused,
      completed,
      failed,
      unlinked,
      lateP50Us: this.#late.p50,
      lateP95Us: this.#late.p95,
      lateMaxUs: this.#late.max,
      skippedUs: this.#loop.skippedUs,
    });
  }
}
