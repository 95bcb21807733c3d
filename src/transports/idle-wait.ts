/** Waits, for a limited time, until nothing is out any more. One waits at a time. */
export class IdleWait {
  #whenIdle: (() => void) | undefined;

  /** Nothing is out any more. */
  notify(): void {
    const whenIdle = this.#whenIdle;
    this.#whenIdle = undefined;
    whenIdle?.();
  }

  /** Resolves at the next {@link notify}, or after `limitMs`; false: too late. */
  async wait(limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#whenIdle = undefined;
        resolve(false);
      }, limitMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
