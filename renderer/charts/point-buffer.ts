/** A point as the chart library takes it: seconds from the right edge (so 0 or less), and a value. NaN: a gap. */
export interface ChartPoint {
  x: number;
  y: number;
}

/**
 * The points of one line, filled anew for each frame. The point objects are kept and written over, so a frame allocates
 * nothing once the buffer has reached its size.
 */
export class PointBuffer {
  /** What the chart library reads; as long as the buffer after `finish`. */
  readonly points: ChartPoint[] = [];
  readonly #pool: ChartPoint[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  at(index: number): ChartPoint | undefined {
    return index < this.#length ? this.#pool[index] : undefined;
  }

  /** The largest value; NaN if there is none. */
  largest(): number {
    let max = Number.NaN;
    for (let i = 0; i < this.#length; i++) {
      const y = this.#pool[i]?.y ?? Number.NaN;
      if (!(max >= y) && !Number.isNaN(y)) max = y;
    }
    return max;
  }

  clear(): void {
    this.#length = 0;
  }

  push(x: number, y: number): void {
    let point = this.#pool[this.#length];
    if (point === undefined) {
      point = { x, y };
      this.#pool.push(point);
    } else {
      point.x = x;
      point.y = y;
    }
    // By index: the library watches the array's own `push`, which would cost more than the rest together.
    this.points[this.#length++] = point;
  }

  /** Ends the line here; what follows is not connected to it. A gap at the beginning or after a gap is none. */
  gap(x: number): void {
    const last = this.#pool[this.#length - 1];
    if (this.#length === 0 || last === undefined || Number.isNaN(last.y)) return;
    this.push(x, Number.NaN);
  }

  /** To be called when all points are in. */
  finish(): void {
    this.points.length = this.#length;
  }
}
