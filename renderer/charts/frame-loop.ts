/** Something that draws itself when it is asked to, if it has to. */
export interface Drawable {
  draw(nowMs: number): void;
}

/**
 * One animation frame for everything that is drawn, and none while nothing changes. Data asks for a frame at most so
 * often; a hand that moves asks at once.
 */
export class FrameLoop {
  readonly #minIntervalMs: number;
  readonly #drawables = new Set<Drawable>();
  #frame: number | undefined;
  #timer: number | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(minIntervalMs: number) {
    this.#minIntervalMs = minIntervalMs;
  }

  add(drawable: Drawable): () => void {
    this.#drawables.add(drawable);
    this.requestNow();
    return () => {
      this.#drawables.delete(drawable);
    };
  }

  /** Something new can be drawn; soon is good enough. */
  request(): void {
    if (this.#frame !== undefined || this.#timer !== undefined) return;
    const waitMs = this.#lastMs + this.#minIntervalMs - performance.now();
    if (waitMs <= 1) {
      this.requestNow();
      return;
    }
    this.#timer = window.setTimeout(() => {
      this.#timer = undefined;
      this.requestNow();
    }, waitMs);
  }

  /** With the next frame. */
  requestNow(): void {
    if (this.#frame !== undefined) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = undefined;
      this.#lastMs = performance.now();
      for (const drawable of this.#drawables) drawable.draw(this.#lastMs);
    });
  }
}
