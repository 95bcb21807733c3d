/**
 * What the kernel's fq_codel was seen to do (`trace_fq_codel` in qdisc.guest.sh), and ours in its place: it gets the same
 * packets at the same times and is asked for one at the same times. Order, drops and marks are its own.
 */
import { FqCodel, type FqCodelSettings } from '../../src/netif/fq-codel.ts';
import type { QdiscStats } from '../../src/netif/qdisc.ts';
import { ethernetHeaderLength } from '../../src/wire/ethernet.ts';
import { ipv4TypeOfService } from '../../src/wire/ipv4.ts';
import { FramePool } from '../harness/frame-pool.ts';

/** CoDel's clock ticks every 1,024 ns, which is in step with whole microseconds every 128: times start at such a one. */
const alignmentUs = 128;
const etherTypeIpv4 = 0x0800;
const ecnMask = 3;
const congestionExperienced = 3;
const hashRange = 2 ** 32;

export interface TracedPacket {
  readonly index: number;
  readonly atUs: number;
  readonly length: number;
  readonly tos: number;
  readonly isIpv4: boolean;
  /** Both ports, in hexadecimal. */
  readonly flow: string;
  fate: Fate;
}

/** What became of a packet: when it left, or that it never did. */
export interface Fate {
  readonly leftAtUs: number | undefined;
  readonly isMarked: boolean;
}

const dropped: Fate = { leftAtUs: undefined, isMarked: false };

export type TracedEvent =
  | { readonly kind: 'arrival'; readonly packet: TracedPacket }
  | {
      readonly kind: 'request';
      readonly atUs: number;
      readonly leftAtUs: number;
      readonly answer: TracedPacket | undefined;
    };

export interface QdiscTrace {
  readonly packets: readonly TracedPacket[];
  readonly events: readonly TracedEvent[];
  /** The kernel's hash of each flow. */
  readonly hashes: ReadonlyMap<string, number>;
}

/** A line of the kernel's trace that is one of our probes'. */
const linePattern = / (\d+)\.(\d{6}): (enter|ask|leave): \([^)]*\)(.*)$/;

/** Reads the text of /sys/kernel/tracing/trace. */
export function parseQdiscTrace(text: string): QdiscTrace {
  const packets: TracedPacket[] = [];
  const events: TracedEvent[] = [];
  const hashes = new Map<string, number>();
  /** By the address of its sk_buff, which is another's once it is gone. */
  const waiting = new Map<string, TracedPacket>();
  let startUs: number | undefined;
  let askedAtUs = 0;
  for (const line of text.split('\n')) {
    const match = linePattern.exec(line);
    if (match === null) continue;
    const [, seconds = '', micros = '', kind, rest = ''] = match;
    const value = (name: string): string => new RegExp(` ${name}=(\\S+)`).exec(rest)?.[1] ?? '';
    const timeUs = Number(seconds) * 1e6 + Number(micros);
    startUs ??= Math.floor(timeUs / alignmentUs) * alignmentUs;
    const atUs = timeUs - startUs;
    switch (kind) {
      case 'ask':
        askedAtUs = atUs;
        break;
      case 'enter': {
        const packet: TracedPacket = {
          index: packets.length,
          atUs,
          length: Number(value('len')),
          tos: Number(value('tos')),
          // As the guest's processor reads two bytes of the frame.
          isIpv4: Number(value('type')) === ((etherTypeIpv4 & 0xff) << 8) + (etherTypeIpv4 >> 8),
          flow: value('ports'),
          fate: dropped,
        };
        packets.push(packet);
        waiting.set(value('skb'), packet);
        events.push({ kind: 'arrival', packet });
        break;
      }
      case 'leave': {
        const answer = waiting.get(value('skb'));
        waiting.delete(value('skb'));
        if (answer !== undefined) {
          const tos = Number(value('tos'));
          const isMarked = answer.isIpv4 && isCongested(tos) && !isCongested(answer.tos);
          answer.fate = { leftAtUs: atUs, isMarked };
          hashes.set(answer.flow, Number(value('hash')));
        }
        events.push({ kind: 'request', atUs: askedAtUs, leftAtUs: atUs, answer });
        break;
      }
      case undefined:
      default:
        break;
    }
  }
  return { packets, events, hashes };
}

function isCongested(tos: number): boolean {
  return (tos & ecnMask) === congestionExperienced;
}

export interface Replay {
  readonly fates: readonly Fate[];
  readonly stats: Readonly<QdiscStats>;
  /** Requests that it or the kernel answered, and of these: with the same packet, marked or not as the kernel's. */
  readonly answers: number;
  readonly sameAnswers: number;
}

/** Ours in the kernel's place: its packets, with the lengths, flows and ECN bits they had, and its moments. */
export function replay(trace: QdiscTrace, settings: FqCodelSettings): Replay {
  const frames = new FramePool();
  // Flows share a queue where the kernel's do: which hash it is makes no difference otherwise.
  const qdisc = new FqCodel(settings, ({ tag }, flows) => {
    const flow = trace.packets[tag]?.flow ?? '';
    return Math.floor(((trace.hashes.get(flow) ?? 0) * flows) / hashRange);
  });
  const fates: Fate[] = trace.packets.map(() => dropped);
  let answers = 0;
  let sameAnswers = 0;
  for (const event of trace.events) {
    if (event.kind === 'arrival') {
      const { index, length, tos, isIpv4, atUs } = event.packet;
      const packet = isIpv4 ? frames.udp({ length, tos, tag: index }) : frames.take(length, index);
      qdisc.enqueue(packet, atUs);
      continue;
    }
    const { answer } = event;
    const packet = qdisc.dequeue(event.atUs);
    if (packet === undefined) {
      if (answer !== undefined) answers++;
      continue;
    }
    const { tag: index } = packet;
    const isMarked =
      isCongested(ipv4TypeOfService(packet.bytes, ethernetHeaderLength)) &&
      !isCongested(trace.packets[index]?.tos ?? 0);
    packet.release();
    fates[index] = { leftAtUs: event.leftAtUs, isMarked };
    answers++;
    if (index === answer?.index && isMarked === answer.fate.isMarked) sameAnswers++;
  }
  return { fates, stats: qdisc.stats, answers, sameAnswers };
}

/** Of a flow: its ports as the guest's processor reads four bytes, the destination's last. */
export function destinationPort(flow: string): number {
  const bytes = Number(flow);
  return (((bytes >>> 16) & 0xff) << 8) | (bytes >>> 24);
}

export interface FlowFigures {
  readonly packets: number;
  readonly drops: number;
  readonly marks: number;
  /** From arrival to departure, of those that left. */
  readonly waitP95Us: number;
}

/** What became of each flow's packets; flows of fewer than `leastPackets` (ARP, handshakes) are left out. */
export function figuresByFlow(
  { packets }: QdiscTrace,
  fates: readonly Fate[],
  leastPackets: number,
): ReadonlyMap<string, FlowFigures> {
  const byFlow = new Map<string, TracedPacket[]>();
  for (const packet of packets) {
    const ofFlow = byFlow.get(packet.flow) ?? [];
    ofFlow.push(packet);
    byFlow.set(packet.flow, ofFlow);
  }
  const figures = new Map<string, FlowFigures>();
  for (const [flow, ofFlow] of byFlow) {
    if (ofFlow.length < leastPackets) continue;
    const waitsUs: number[] = [];
    let marks = 0;
    for (const { index, atUs } of ofFlow) {
      const { leftAtUs, isMarked } = fates[index] ?? dropped;
      if (leftAtUs !== undefined) waitsUs.push(leftAtUs - atUs);
      if (isMarked) marks++;
    }
    waitsUs.sort((a, b) => a - b);
    figures.set(flow, {
      packets: ofFlow.length,
      drops: ofFlow.length - waitsUs.length,
      marks,
      waitP95Us: waitsUs[Math.floor(waitsUs.length * 0.95)] ?? Number.NaN,
    });
  }
  return figures;
}
