import { invariant } from '../base/errors.ts';
import type { Transfer } from './transfer.ts';

/** A list of transfers in the order they were added, with removal from anywhere; links are kept on the transfers. */
export class TransferList {
  #head: Transfer | undefined;
  #tail: Transfer | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get head(): Transfer | undefined {
    return this.#head;
  }

  push(transfer: Transfer): void {
    invariant(transfer.list === undefined, 'a transfer is in two lists');
    transfer.list = this;
    transfer.previous = this.#tail;
    transfer.next = undefined;
    if (this.#tail === undefined) this.#head = transfer;
    else this.#tail.next = transfer;
    this.#tail = transfer;
    this.#length++;
  }

  remove(transfer: Transfer): void {
    invariant(transfer.list === this, 'a transfer is not in the list it is taken from');
    if (transfer.previous === undefined) this.#head = transfer.next;
    else transfer.previous.next = transfer.next;
    if (transfer.next === undefined) this.#tail = transfer.previous;
    else transfer.next.previous = transfer.previous;
    transfer.list = undefined;
    transfer.previous = undefined;
    transfer.next = undefined;
    this.#length--;
  }

  shift(): Transfer | undefined {
    const transfer = this.#head;
    if (transfer !== undefined) this.remove(transfer);
    return transfer;
  }
}
