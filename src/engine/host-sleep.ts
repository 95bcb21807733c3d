/** Whether the host is about to sleep or asleep, and a way to wait for its waking. */
export class HostSleep {
  #ended: Promise<void> | undefined;
  #end: () => void = () => {};

  get isAsleep(): boolean {
    return this.#ended !== undefined;
  }

  begin(): void {
    this.#ended ??= new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** It is awake, or nobody wants to wait any longer. */
  end(): void {
    this.#ended = undefined;
    this.#end();
  }

  /** Resolves when it is awake: at once, if it is. */
  async whenAwake(): Promise<void> {
    await this.#ended;
  }
}
