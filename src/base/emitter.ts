/** Stops listening; calling it again does nothing. */
export type Dispose = () => void;

/** An event that can be listened to: a function that takes a listener and returns its disposer. */
export type Event<T> = (listener: (value: T) => void) => Dispose;

/**
 * The source of one {@link Event}. Listeners are called in the order they were added; one that is added or removed
 * while an event is being delivered takes effect with the next one.
 */
export class Emitter<T> {
  #listeners: readonly ((value: T) => void)[] = [];

  readonly event: Event<T> = (listener) => {
    // A wrapper, so that the same function added twice is two listeners.
    const own = (value: T): void => listener(value);
    this.#listeners = [...this.#listeners, own];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== own);
    };
  };

  get listenerCount(): number {
    return this.#listeners.length;
  }

  emit(value: T): void {
    for (const listener of this.#listeners) listener(value);
  }
}
