import { invariant } from '../base/errors.ts';
import { UrbReader, type UrbSink } from '../wire/usbip-reader.ts';
import {
  urbActualLength,
  urbCommand,
  urbCommands,
  urbHeaderLength,
  urbSeqnum,
  urbStatus,
  writeUrbSetup,
  writeUrbSubmit,
  writeUrbUnlink,
} from '../wire/usbip-urb.ts';

/** A SUBMIT of ours, which can be sent again and again. While it is out it must not be touched. */
export interface ClientUrb {
  readonly endpointAddress: number;
  /** Room for a header ({@link urbHeaderLength} bytes), and the data behind it. */
  readonly message: Uint8Array;
  /** Bytes to send, or to ask for. */
  length: number;
  actualLength: number;
  /** 0: it is not out. */
  seqnum: number;
  /** Of the UNLINK that asks for its end; 0: there is none. */
  unlinkSeqnum: number;
}

export interface UrbClientOptions<Urb extends ClientUrb> {
  readonly deviceId: number;
  /** Sends bytes, which stay as they are until the peer has answered. */
  readonly write: (bytes: Uint8Array) => void;
  /**
   * A SUBMIT has ended: `errno` is 0 or negative, Linux's numbers. Each that was sent ends once, unless it was abandoned.
   * @param unlinked it ended because we asked for that
   */
  readonly handleUrbDone: (urb: Urb, errno: number, unlinked: boolean, nowUs: number) => void;
}

/** Answers that may come for what was given up; beyond it the oldest is forgotten. */
const maxAbandoned = 1024;
/** The longest data of an answer that nobody waits for. */
const maxSkippedBytes = 16 * 1024 * 1024;
/** Never used for a SUBMIT: asking for its end disturbs nothing, and is answered at once. */
const nobody = 0;

/**
 * The client's end of a USB/IP connection after the import: who has been asked for what, and which answer belongs to whom.
 *
 * An UNLINK can cross the answer to its SUBMIT. If the answer comes first it counts, and the reply to the UNLINK is of no
 * interest. If the reply comes first, the SUBMIT has ended without data, whatever its status says: Linux' server drops the
 * data of a transfer that completed while it was being unlinked, and says 0. An answer that comes even later is skipped.
 */
export class UrbClient<Urb extends ClientUrb> implements UrbSink {
  readonly #options: UrbClientOptions<Urb>;
  readonly #reader = new UrbReader(this);
  readonly #pending = new Map<number, Urb>();
  /** UNLINK's seqnum → that of the SUBMIT. */
  readonly #unlinks = new Map<number, number>();
  /** Seqnums whose answers may still come though nobody waits for them; whether they have data. */
  readonly #abandoned = new Map<number, boolean>();
  #seqnum = 0;
  #heardAtUs: number;
  #askedAtUs: number | undefined;

  // The answer that is being read.
  #command = 0;
  #answered: Urb | undefined;
  #answeredSeqnum = 0;
  #status = 0;
  #dataLength = 0;

  constructor(options: UrbClientOptions<Urb>, nowUs: number) {
    this.#options = options;
    this.#heardAtUs = nowUs;
  }

  /** SUBMITs that are out. */
  get outstanding(): number {
    return this.#pending.size;
  }
  /** When something came from the server last. */
  get heardAtUs(): number {
    return this.#heardAtUs;
  }
  /** Since when an answer to {@link askIfAlive} is awaited; undefined: it is not. */
  get askedAtUs(): number | undefined {
    return this.#askedAtUs;
  }

  // ---- what goes out ----

  /** A bulk or interrupt transfer. @param interval see `writeUrbSubmit` */
  submit(urb: Urb, flags: number, interval: number): void {
    this.#begin(urb);
    writeUrbSubmit(
      urb.message,
      0,
      urb.seqnum,
      this.#options.deviceId,
      urb.endpointAddress,
      flags,
      urb.length,
      interval,
    );
    this.#send(urb);
  }

  /** A control transfer; `urb.endpointAddress` is 0x80 if data come back. */
  submitControl(urb: Urb, requestType: number, request: number, value: number, index: number): void {
    this.#begin(urb);
    const { deviceId } = this.#options;
    writeUrbSubmit(urb.message, 0, urb.seqnum, deviceId, urb.endpointAddress, 0, urb.length, 0);
    writeUrbSetup(urb.message, 0, requestType, request, value, index, urb.length);
    this.#send(urb);
  }

  #begin(urb: Urb): void {
    invariant(urb.seqnum === 0, 'a transfer was submitted twice');
    invariant(urbHeaderLength + urb.length <= urb.message.length, 'a transfer is longer than its buffer');
    urb.seqnum = this.#nextSeqnum();
    urb.unlinkSeqnum = 0;
    urb.actualLength = 0;
    this.#pending.set(urb.seqnum, urb);
  }

  #send(urb: Urb): void {
    const isIn = urb.endpointAddress >= 0x80;
    this.#options.write(urb.message.subarray(0, isIn ? urbHeaderLength : urbHeaderLength + urb.length));
  }

  /** Asks for the end of a SUBMIT. A no-op if it is not out, or was asked for already. */
  unlink(urb: Urb): void {
    if (urb.seqnum === 0 || urb.unlinkSeqnum !== 0) return;
    urb.unlinkSeqnum = this.#nextSeqnum();
    this.#unlinks.set(urb.unlinkSeqnum, urb.seqnum);
    this.#sendUnlink(urb.unlinkSeqnum, urb.endpointAddress, urb.seqnum);
  }

  /** Asks for the end of a SUBMIT whose answer nobody waits for any more: it counts as ended now. */
  abandon(urb: Urb): void {
    if (urb.seqnum === 0) return;
    this.unlink(urb);
    this.#pending.delete(urb.seqnum);
    this.#noteAbandoned(urb);
    urb.seqnum = 0;
  }

  /** Asks the server for something that it answers at once, without a word to the device. */
  askIfAlive(nowUs: number): void {
    this.#askedAtUs = nowUs;
    this.#sendUnlink(this.#nextSeqnum(), 0, nobody);
  }

  #sendUnlink(seqnum: number, endpointAddress: number, target: number): void {
    const message = new Uint8Array(urbHeaderLength);
    writeUrbUnlink(message, 0, seqnum, this.#options.deviceId, endpointAddress, target);
    this.#options.write(message);
  }

  #nextSeqnum(): number {
    do this.#seqnum = (this.#seqnum + 1) >>> 0;
    while (this.#seqnum === nobody || this.#pending.has(this.#seqnum));
    return this.#seqnum;
  }

  #noteAbandoned(urb: Urb): void {
    this.#abandoned.set(urb.seqnum, urb.endpointAddress >= 0x80);
    if (this.#abandoned.size <= maxAbandoned) return;
    for (const oldest of this.#abandoned.keys()) {
      this.#abandoned.delete(oldest);
      return;
    }
  }

  /** The connection is over: hands out what is still pending, and forgets it. */
  takePending(): readonly Urb[] {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#unlinks.clear();
    for (const urb of pending) urb.seqnum = 0;
    return pending;
  }

  // ---- what comes in ----

  /** @returns false: what came makes no sense, and the connection is of no use any more */
  handleBytes(bytes: Uint8Array, nowUs: number): boolean {
    this.#heardAtUs = nowUs;
    this.#askedAtUs = undefined;
    return this.#reader.read(bytes, 0, bytes.length, nowUs);
  }

  handleUrbHeader(bytes: Uint8Array, offset: number): number {
    this.#command = urbCommand(bytes, offset);
    this.#answeredSeqnum = urbSeqnum(bytes, offset);
    this.#status = urbStatus(bytes, offset);
    if (this.#status > 0) return -1;
    if (this.#command === urbCommands.unlinkReply) return 0;
    if (this.#command !== urbCommands.submitReply) return -1;
    const actualLength = urbActualLength(bytes, offset);
    const urb = this.#pending.get(this.#answeredSeqnum);
    this.#answered = urb;
    this.#dataLength = 0;
    if (urb === undefined) return this.#lengthToSkip(actualLength);
    if (actualLength > urb.length) return -1;
    urb.actualLength = actualLength;
    return urb.endpointAddress >= 0x80 ? actualLength : 0;
  }

  #lengthToSkip(actualLength: number): number {
    const hasData = this.#abandoned.get(this.#answeredSeqnum);
    if (hasData === undefined || actualLength > maxSkippedBytes) return -1;
    this.#abandoned.delete(this.#answeredSeqnum);
    return hasData ? actualLength : 0;
  }

  handleUrbData(bytes: Uint8Array, offset: number, length: number): void {
    const urb = this.#answered;
    // It may have been given up while its data come in.
    if (urb?.seqnum !== this.#answeredSeqnum) return;
    urb.message.set(bytes.subarray(offset, offset + length), urbHeaderLength + this.#dataLength);
    this.#dataLength += length;
  }

  handleUrbEnd(nowUs: number): void {
    const urb = this.#answered;
    if (this.#command === urbCommands.unlinkReply) this.#handleUnlinkReply(nowUs);
    else if (urb?.seqnum === this.#answeredSeqnum) this.#end(urb, this.#status, false, nowUs);
  }

  #handleUnlinkReply(nowUs: number): void {
    const target = this.#unlinks.get(this.#answeredSeqnum);
    if (target === undefined) return;
    this.#unlinks.delete(this.#answeredSeqnum);
    const urb = this.#pending.get(target);
    if (urb === undefined) {
      // What really was unlinked gets no other answer.
      if (this.#status !== 0) this.#abandoned.delete(target);
      return;
    }
    // Its answer may be on its way behind this one.
    if (this.#status === 0) this.#noteAbandoned(urb);
    urb.actualLength = 0;
    this.#end(urb, this.#status, true, nowUs);
  }

  #end(urb: Urb, errno: number, unlinked: boolean, nowUs: number): void {
    this.#pending.delete(urb.seqnum);
    urb.seqnum = 0;
    this.#options.handleUrbDone(urb, errno, unlinked, nowUs);
  }
}
