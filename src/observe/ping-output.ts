/**
 * What the `ping` program of iputils prints with `-D -O` while it runs, a line at a time. Its sequence numbers are those
 * of the packets: 16 bits, the first is 1. Stamps are microseconds of the wall clock.
 */
export type PingLine =
  | {
      readonly kind: 'reply';
      readonly sequence: number;
      /** When it was printed, which is when the reply was read. */
      readonly stampUs: number;
      readonly rttUs: number;
    }
  /** The next probe is about to be sent, and this one has no reply yet. */
  | { readonly kind: 'outstanding'; readonly sequence: number; readonly stampUs: number }
  /** A host on the way, or this one, says that it cannot be delivered. */
  | { readonly kind: 'unreachable'; readonly sequence: number; readonly reason: string };

const replyLine = /^\[(\d+)\.(\d{1,6})\] .*\bicmp_[rs]eq=(\d+)\b.*\btime=(\d+(?:\.\d+)?) ms/;
const outstandingLine = /^\[(\d+)\.(\d{1,6})\] no answer yet for icmp_seq=(\d+)/;
const unreachableLine = /^(?:\[[\d.]+\] )?From .*? icmp_seq=(\d+) (.+)$/;

/** Undefined for all other lines: the heading, duplicates, replies without a time. */
export function parsePingLine(line: string): PingLine | undefined {
  const reply = replyLine.exec(line);
  if (reply !== null) {
    if (line.includes('(DUP!)')) return undefined;
    return {
      kind: 'reply',
      sequence: Number(reply[3]),
      stampUs: stampOf(reply),
      rttUs: Number(reply[4]) * 1000,
    };
  }
  const outstanding = outstandingLine.exec(line);
  if (outstanding !== null) {
    return { kind: 'outstanding', sequence: Number(outstanding[3]), stampUs: stampOf(outstanding) };
  }
  const unreachable = unreachableLine.exec(line);
  if (unreachable !== null) {
    return { kind: 'unreachable', sequence: Number(unreachable[1]), reason: (unreachable[2] ?? '').trim() };
  }
  return undefined;
}

function stampOf(match: RegExpExecArray): number {
  return Number(match[1]) * 1e6 + Number((match[2] ?? '').padEnd(6, '0'));
}
