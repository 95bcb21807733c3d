/**
 * A first-in first-out queue of fixed capacity that allocates nothing once it is made.
 * `push` on a full queue answers false: what then happens is the caller's to say.
 */
export class RingQueue<T> {
  readonly capacity: number;
  readonly #items: (T | undefined)[];
  #head = 0;
  #length = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#items = Array.from({ length: capacity }, () => undefined);
  }

  get length(): number {
    return this.#length;
  }

  push(item: T): boolean {
    if (this.#length === this.capacity) return false;
    let tail = this.#head + this.#length;
    if (tail >= this.capacity) tail -= this.capacity;
    this.#items[tail] = item;
    this.#length++;
    return true;
  }

  /** The oldest item, left in place. */
  peek(): T | undefined {
    return this.#length === 0 ? undefined : this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = this.#head + 1 === this.capacity ? 0 : this.#head + 1;
    this.#length--;
    return item;
  }
}
