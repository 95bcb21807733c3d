/** A line of a text, or a piece of one. */
export interface TextLine {
  /** Of the line in the input, from 1. */
  readonly number: number;
  readonly text: string;
}
