/** What came of parsing a rare format: the value, or what is wrong and where. Parsers never throw. */
export type ParseResult<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      /** One sentence without a full stop, for a log line or a problem's details. */
      readonly problem: string;
      /** The byte at which the input went wrong. */
      readonly offset: number;
    };
