/** A canvas that fills its parent element, in CSS pixels at the resolution of the screen. */
export class CanvasSurface {
  readonly canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D | null;
  width = 0;
  height = 0;
  #ratio = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.#context = canvas.getContext('2d');
  }

  /** Fits the canvas to a size. @returns whether anything changed */
  resize(width: number, height: number, ratio: number): boolean {
    if (width === this.width && height === this.height && ratio === this.#ratio) return false;
    this.width = width;
    this.height = height;
    this.#ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    return true;
  }

  /** An empty surface to draw on, one unit a CSS pixel; undefined if there is nothing to see. */
  begin(): CanvasRenderingContext2D | undefined {
    const context = this.#context;
    if (context === null || this.width === 0 || this.height === 0) return undefined;
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    return context;
  }
}
