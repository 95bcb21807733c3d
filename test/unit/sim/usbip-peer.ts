import { VirtualClock } from '../../../src/base/virtual-clock.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import { SimUsbipExports } from '../../../src/sim/usbip-exports.ts';
import { UsbipServerSession } from '../../../src/sim/usbip-server.ts';
import { personality } from './sim-setup.ts';

/** A message of the server in the second phase. */
export interface Reply {
  readonly command: number;
  readonly seqnum: number;
  readonly status: number;
  readonly actualLength: number;
  readonly packetCount: number;
  readonly data: Uint8Array;
  readonly atUs: number;
}

const headerBytes = 48;

/**
 * A client of a server session in simulated time, which builds and takes apart every byte by itself: what it takes for
 * right does not come from the code under test.
 */
export class UsbipPeer {
  readonly clock = new VirtualClock();
  readonly session: UsbipServerSession;
  readonly exports: SimUsbipExports;
  readonly replies: Reply[] = [];
  /** Everything that came in the first phase. */
  opBytes = new Uint8Array(0);
  #deviceId = 0;
  #attached = false;
  #rest = new Uint8Array(0);
  readonly #isIn = new Map<number, boolean>();
  #seqnum = 0;

  constructor(options: { devices?: readonly SimPersonality[]; exports?: SimUsbipExports } = {}) {
    this.exports =
      options.exports ?? new SimUsbipExports(options.devices ?? [personality('modem-10mbit')], 1);
    this.session = new UsbipServerSession(this.exports);
    this.clock.add({
      poll: (nowUs) => {
        this.session.poll(nowUs);
        this.#collect();
      },
      pollAtUs: () => this.session.pollAtUs(),
    });
  }

  get nowUs(): number {
    return this.clock.nowUs();
  }

  run(us: number): void {
    this.clock.runUntil(this.nowUs + us);
  }

  send(bytes: Uint8Array): void {
    this.session.handleBytes(bytes, this.nowUs);
    this.#collect();
  }

  #collect(): void {
    const bytes = this.session.takeOutput();
    if (bytes === undefined) return;
    if (this.#attached) this.#read(bytes);
    else this.opBytes = Uint8Array.from([...this.opBytes, ...bytes]);
  }

  #read(bytes: Uint8Array): void {
    let rest = Uint8Array.from([...this.#rest, ...bytes]);
    while (rest.length >= headerBytes) {
      const view = new DataView(rest.buffer);
      const seqnum = view.getUint32(4);
      const command = view.getUint32(0);
      const actualLength = command === 3 ? view.getInt32(24) : 0;
      const length = this.#isIn.get(seqnum) === true ? actualLength : 0;
      if (rest.length < headerBytes + length) break;
      if (command === 3 && !this.#isIn.has(seqnum)) throw new Error(`a reply to ${seqnum}, which is not out`);
      this.#isIn.delete(seqnum);
      this.replies.push({
        command,
        seqnum,
        status: view.getInt32(20),
        actualLength,
        packetCount: command === 3 ? view.getUint32(32) : 0,
        data: rest.slice(headerBytes, headerBytes + length),
        atUs: this.nowUs,
      });
      rest = rest.slice(headerBytes + length);
    }
    this.#rest = rest;
  }

  /** Asks for a device, and gets it. */
  attach(busId = '1-1'): void {
    const request = new Uint8Array(40);
    request.set([0x01, 0x11, 0x80, 0x03]);
    request.set(new TextEncoder().encode(busId), 8);
    this.send(request);
    if (this.opBytes.length !== 320) throw new Error(`the import's reply has ${this.opBytes.length} bytes`);
    const view = new DataView(this.opBytes.buffer);
    this.#deviceId = ((view.getUint32(8 + 288) << 16) | view.getUint32(8 + 292)) >>> 0;
    this.#attached = true;
  }

  #header(command: number, isIn: boolean, endpoint: number): { bytes: Uint8Array; view: DataView } {
    const bytes = new Uint8Array(headerBytes);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, command);
    view.setUint32(4, ++this.#seqnum);
    view.setUint32(8, this.#deviceId);
    view.setUint32(12, isIn ? 1 : 0);
    view.setUint32(16, endpoint);
    return { bytes, view };
  }

  /** Sends a SUBMIT. @returns its seqnum */
  submit(options: {
    endpoint: number;
    isIn: boolean;
    /** IN: how many bytes; OUT: which. */
    length?: number;
    data?: Uint8Array;
    flags?: number;
    packetCount?: number;
    setup?: readonly number[];
  }): number {
    const { endpoint, isIn, data = new Uint8Array(0), flags = 0, packetCount = 0, setup = [] } = options;
    const { bytes, view } = this.#header(1, isIn, endpoint);
    view.setUint32(20, flags);
    view.setUint32(24, isIn ? (options.length ?? 0) : data.length);
    view.setUint32(32, packetCount);
    bytes.set(setup, 40);
    this.#isIn.set(this.#seqnum, isIn);
    this.send(isIn ? bytes : Uint8Array.from([...bytes, ...data]));
    return this.#seqnum;
  }

  unlink(target: number): number {
    const { bytes, view } = this.#header(2, false, 0);
    view.setUint32(20, target);
    this.send(bytes);
    return this.#seqnum;
  }

  /** The replies to a SUBMIT or UNLINK. */
  repliesTo(seqnum: number): readonly Reply[] {
    return this.replies.filter((reply) => reply.seqnum === seqnum);
  }

  /** The one reply to a SUBMIT or UNLINK, within a second. */
  replyTo(seqnum: number): Reply {
    for (let i = 0; i < 1000 && this.repliesTo(seqnum).length === 0; i++) this.run(1000);
    const [reply, second] = this.repliesTo(seqnum);
    if (reply === undefined || second !== undefined) throw new Error(`not one reply to ${seqnum}`);
    return reply;
  }

  controlIn(requestType: number, request: number, value: number, index: number, length: number): Reply {
    const setup = setupBytes(requestType, request, value, index, length);
    return this.replyTo(this.submit({ endpoint: 0, isIn: true, length, setup }));
  }

  controlOut(
    requestType: number,
    request: number,
    value: number,
    index: number,
    data = new Uint8Array(0),
  ): Reply {
    const setup = setupBytes(requestType, request, value, index, data.length);
    return this.replyTo(this.submit({ endpoint: 0, isIn: false, data, setup }));
  }
}

function setupBytes(
  requestType: number,
  request: number,
  value: number,
  index: number,
  length: number,
): readonly number[] {
  return [requestType, request, value & 255, value >> 8, index & 255, index >> 8, length & 255, length >> 8];
}
