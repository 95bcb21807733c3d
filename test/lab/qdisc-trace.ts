/**
 * What the kernel's fq_codel was seen to do (`trace_fq_codel` in qdisc.guest.sh), and ours in its place: it gets the same
 * packets at the same times and is asked for one at the same times. Order, drops and marks are its own.
 */
import { FqCodel, type FqCodelSettings } from '../../src/netif/fq-codel.ts';
import type { QdiscStats } from '../../src/netif/qdisc.ts';
import { ethernetHeaderLength } from '../../src/wire/ethernet.ts';
import { ipv4TypeOfService } from '../../src/wire/ipv4.ts';
import type { Packet } from '../../src/usbnet/packet.ts';
import { FramePool } from '../harness/frame-pool.ts';

/** CoDel's unit of time is 1,024 ns. */
const unitUs = 1.024;
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
  /** The kernel's, which its queue was chosen by. */
  readonly hash: number;
  /** Both ports, in hexadecimal. */
  readonly flow: string;
  fate: Fate;
}

/** What became of a packet: when it was sent, or that it never was. */
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
      readonly answer: TracedPacket | undefined;
    };

export interface QdiscTrace {
  readonly packets: readonly TracedPacket[];
  readonly events: readonly TracedEvent[];
}

/** A line of the kernel's trace that is one of our probes' (fq-codel-probe.mjs). */
const linePattern = / (\d+\.\d{6}): (enter|leave): \([^)]*\)(.*)$/;

/** Reads the text of /sys/kernel/tracing/trace. Times are those that the kernel's fq_codel read, from the first packet's on. */
export function parseQdiscTrace(text: string): QdiscTrace {
  const packets: TracedPacket[] = [];
  const events: TracedEvent[] = [];
  /** By the address of its sk_buff, which is another's once it is gone. */
  const waiting = new Map<string, TracedPacket>();
  let startUnits: number | undefined;
  for (const line of text.split('\n')) {
    const match = linePattern.exec(line);
    if (match === null) continue;
    const [, seconds = '', kind, rest = ''] = match;
    const value = (name: string): string => new RegExp(` ${name}=(\\S+)`).exec(rest)?.[1] ?? '';
    const skb = value('skb');
    if (kind === 'enter') {
      const units = Number(value('at'));
      startUnits ??= units;
      const packet: TracedPacket = {
        index: packets.length,
        atUs: inTheMiddle(units - startUnits),
        length: Number(value('len')),
        tos: Number(value('tos')),
        // As the guest's processor reads two bytes of the frame.
        isIpv4: Number(value('type')) === ((etherTypeIpv4 & 0xff) << 8) + (etherTypeIpv4 >> 8),
        hash: Number(value('hash')),
        flow: value('ports'),
        fate: dropped,
      };
      packets.push(packet);
      waiting.set(skb, packet);
      events.push({ kind: 'arrival', packet });
      continue;
    }
    // It is asked before the first packet comes, and says no.
    if (startUnits === undefined) continue;
    const answer = waiting.get(skb);
    waiting.delete(skb);
    if (answer === undefined) {
      events.push({ kind: 'request', atUs: Number(seconds) * 1e6 - startUnits * unitUs, answer });
      continue;
    }
    const isOfNew = BigInt(value('new')) !== BigInt(value('qdisc')) + BigInt(value('newlist'));
    const units = Number(value('at')) + Number(value(isOfNew ? 'newwait' : 'oldwait'));
    const atUs = inTheMiddle(units - startUnits);
    const tos = Number(value('tos'));
    const isMarked = answer.isIpv4 && isCongested(tos) && !isCongested(answer.tos);
    answer.fate = { leftAtUs: atUs, isMarked };
    events.push({ kind: 'request', atUs, answer });
  }
  return { packets, events };
}

/** A time that is in CoDel's unit for certain, whichever way it is rounded. */
function inTheMiddle(units: number): number {
  return (units + 0.5) * unitUs;
}

function isCongested(tos: number): boolean {
  return (tos & ecnMask) === congestionExperienced;
}

export interface Replay {
  readonly fates: readonly Fate[];
  readonly stats: Readonly<QdiscStats>;
  /** Requests that it or the kernel answered. */
  readonly answers: number;
  /** The first of them where ours was not the very packet that the kernel answered with, or was marked and that was not. */
  readonly firstOther: string | undefined;
}

/** Ours in the kernel's place: its packets, with the lengths, flows and ECN bits they had, and its moments. */
export function replay(trace: QdiscTrace, settings: FqCodelSettings): Replay {
  const frames = new FramePool();
  // Packets share a queue where the kernel's do: which hash it is makes no difference otherwise.
  const qdisc = new FqCodel(settings, ({ tag }, flows) =>
    Math.floor(((trace.packets[tag]?.hash ?? 0) * flows) / hashRange),
  );
  const fates: Fate[] = trace.packets.map(() => dropped);
  let answers = 0;
  let firstOther: string | undefined;
  for (const event of trace.events) {
    if (event.kind === 'arrival') {
      const { index, length, tos, isIpv4, atUs } = event.packet;
      const packet = isIpv4 ? frames.udp({ length, tos, tag: index }) : frames.take(length, index);
      qdisc.enqueue(packet, atUs);
      continue;
    }
    const { answer, atUs } = event;
    const packet = qdisc.dequeue(atUs);
    if (packet === undefined && answer === undefined) continue;
    answers++;
    const ours = packet === undefined ? 'none' : answerWords(packet.tag, wasMarked(packet, trace));
    const kernels = answer === undefined ? 'none' : answerWords(answer.index, answer.fate.isMarked);
    if (ours !== kernels) {
      firstOther ??= `request ${answers}, at ${atUs} us: ${ours}, the kernel's: ${kernels}`;
    }
    if (packet === undefined) continue;
    fates[packet.tag] = { leftAtUs: atUs, isMarked: wasMarked(packet, trace) };
    packet.release();
  }
  return { fates, stats: qdisc.stats, answers, firstOther };
}

/** Whether ours has marked it. */
function wasMarked(packet: Packet, { packets }: QdiscTrace): boolean {
  const tos = ipv4TypeOfService(packet.bytes, ethernetHeaderLength);
  return isCongested(tos) && !isCongested(packets[packet.tag]?.tos ?? 0);
}

function answerWords(index: number, isMarked: boolean): string {
  return `packet ${index}${isMarked ? ', marked' : ''}`;
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
