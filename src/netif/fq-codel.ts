import type { Packet } from '../usbnet/packet.ts';
import { Codel, CodelParameters, type CodelQueue, defaultCodelSettings } from './codel.ts';
import { markCongestionExperienced } from './ecn.ts';
import { flowHash } from './flow-hash.ts';
import { emptyQdiscStats, type Qdisc, type QdiscStats } from './qdisc.ts';

/** fq_codel under the names that `tc` uses for it. */
export interface FqCodelSettings {
  readonly targetUs: number;
  readonly intervalUs: number;
  /** Packets that it holds in all. */
  readonly limitPackets: number;
  /** Queues that flows are spread over by their hash. */
  readonly flows: number;
  /** Bytes that a flow may send before it is the next one's turn. */
  readonly quantumBytes: number;
  readonly ecn: boolean;
  /** Memory that the packets may take up in all. */
  readonly memoryLimitBytes: number;
  /** Packets dropped at most, from the flow with the longest backlog, when there is no more room. */
  readonly dropBatchPackets: number;
}

/** Linux's, for an interface with an MTU of 1,500. */
export const defaultFqCodelSettings: FqCodelSettings = {
  targetUs: defaultCodelSettings.targetUs,
  intervalUs: defaultCodelSettings.intervalUs,
  limitPackets: 10_240,
  flows: 1024,
  quantumBytes: defaultCodelSettings.mtuBytes,
  ecn: defaultCodelSettings.ecn,
  memoryLimitBytes: 32 * 1024 * 1024,
  dropBatchPackets: 64,
};

/** Which of `flows` queues a packet belongs to. */
export type FlowClassifier = (packet: Packet, flows: number) => number;

/** Queues by a seeded hash over addresses, protocol and ports. */
export function hashClassifier(seed: number): FlowClassifier {
  return (packet, flows) => Math.floor((flowHash(packet, seed) * flows) / 2 ** 32);
}

/** One queue: its packets, and what CoDel knows of it. */
class Flow {
  readonly index: number;
  readonly codel = new Codel();
  head: Packet | undefined = undefined;
  tail: Packet | undefined = undefined;
  /** Bytes that it may still send in this round. */
  deficitBytes = 0;
  isListed = false;
  nextFlow: Flow | undefined = undefined;

  constructor(index: number) {
    this.index = index;
  }
}

/** Flows in the order in which it is their turn. */
class FlowList {
  #head: Flow | undefined = undefined;
  #tail: Flow | undefined = undefined;
  length = 0;

  get first(): Flow | undefined {
    return this.#head;
  }

  append(flow: Flow): void {
    flow.nextFlow = undefined;
    if (this.#tail === undefined) this.#head = flow;
    else this.#tail.nextFlow = flow;
    this.#tail = flow;
    this.length++;
  }

  removeFirst(): void {
    const flow = this.#head;
    if (flow === undefined) return;
    this.#head = flow.nextFlow;
    if (this.#head === undefined) this.#tail = undefined;
    flow.nextFlow = undefined;
    this.length--;
  }
}

/**
 * fq_codel as in Linux (RFC 8290): flows by hash, served in turns of a quantum by their deficit, those that had nothing
 * waiting before the others; each flow's queue under CoDel. A packet's priority plays no part.
 */
export class FqCodel implements Qdisc, CodelQueue<Packet> {
  readonly name = 'fq_codel';
  onDrop: ((packet: Packet) => void) | undefined = undefined;
  readonly #settings: FqCodelSettings;
  readonly #parameters: CodelParameters;
  readonly #classify: FlowClassifier;
  /** Made when first used: most never are. */
  readonly #flows: (Flow | undefined)[];
  /** Bytes waiting, by flow: what is searched for the longest backlog. */
  readonly #flowBacklogs: Float64Array;
  readonly #newFlows = new FlowList();
  readonly #oldFlows = new FlowList();
  readonly #stats: QdiscStats = emptyQdiscStats();
  #length = 0;
  #backlogBytes = 0;
  #memoryBytes = 0;
  /** The flow that CoDel takes packets from. */
  #current: Flow | undefined = undefined;

  constructor(settings: FqCodelSettings, classify: FlowClassifier) {
    this.#settings = settings;
    this.#parameters = new CodelParameters({ ...settings, mtuBytes: defaultCodelSettings.mtuBytes });
    this.#classify = classify;
    this.#flows = Array.from({ length: settings.flows }, () => undefined);
    this.#flowBacklogs = new Float64Array(settings.flows);
  }

  get length(): number {
    return this.#length;
  }
  get backlogBytes(): number {
    return this.#backlogBytes;
  }
  get stats(): Readonly<QdiscStats> {
    return this.#stats;
  }
  get flows(): number {
    return this.#newFlows.length + this.#oldFlows.length;
  }
  get roomPackets(): number {
    return this.#settings.limitPackets;
  }
  /** What the packets that wait take up, the unused ends of their buffers included. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  enqueue(packet: Packet, nowUs: number): boolean {
    const { quantumBytes, limitPackets, memoryLimitBytes } = this.#settings;
    const index = this.#classify(packet, this.#settings.flows);
    const flow = this.#flowAt(index);
    packet.enqueuedAtUs = nowUs;
    packet.next = undefined;
    if (flow.tail === undefined) flow.head = packet;
    else flow.tail.next = packet;
    flow.tail = packet;
    this.#flowBacklogs[index] = (this.#flowBacklogs[index] ?? 0) + packet.length;
    this.#backlogBytes += packet.length;
    this.#memoryBytes += packet.bytes.length;
    this.#length++;
    if (!flow.isListed) {
      flow.isListed = true;
      flow.deficitBytes = quantumBytes;
      this.#newFlows.append(flow);
      this.#stats.newFlows++;
    }
    if (this.#length <= limitPackets && this.#memoryBytes <= memoryLimitBytes) return true;
    return this.#dropBatch(packet);
  }

  #flowAt(index: number): Flow {
    return (this.#flows[index] ??= new Flow(index));
  }

  /**
   * Drops from the head of the flow with the longest backlog until half of that is gone, in batches, since finding it is
   * dear. True if the packet that has just come is not among them.
   */
  #dropBatch(arrived: Packet): boolean {
    const flow = this.#fattestFlow();
    const threshold = Math.floor((this.#flowBacklogs[flow.index] ?? 0) / 2);
    let bytes = 0;
    let count = 0;
    let isKept = true;
    do {
      const packet = this.#takeFrom(flow);
      if (packet === undefined) break;
      bytes += packet.length;
      count++;
      if (packet === arrived) isKept = false;
      else this.onDrop?.(packet);
      packet.release();
    } while (count < this.#settings.dropBatchPackets && bytes < threshold);
    flow.codel.addDrops(count);
    this.#stats.drops += count;
    this.#stats.dropsOverLimit += count;
    return isKept;
  }

  #fattestFlow(): Flow {
    const backlogs = this.#flowBacklogs;
    let index = 0;
    let most = 0;
    for (let i = 0; i < backlogs.length; i++) {
      const bytes = backlogs[i] ?? 0;
      if (bytes > most) {
        most = bytes;
        index = i;
      }
    }
    return this.#flowAt(index);
  }

  dequeue(nowUs: number): Packet | undefined {
    for (;;) {
      const isNew = this.#newFlows.first !== undefined;
      const list = isNew ? this.#newFlows : this.#oldFlows;
      const flow = list.first;
      if (flow === undefined) return undefined;
      if (flow.deficitBytes <= 0) {
        flow.deficitBytes += this.#settings.quantumBytes;
        list.removeFirst();
        this.#oldFlows.append(flow);
        continue;
      }
      this.#current = flow;
      const packet = flow.codel.dequeue(this, this.#parameters, nowUs);
      if (packet !== undefined) {
        flow.deficitBytes -= packet.length;
        return packet;
      }
      list.removeFirst();
      // A new flow that has run empty goes once through the old ones, lest one that comes back at once starves them.
      if (isNew && this.#oldFlows.length > 0) this.#oldFlows.append(flow);
      else flow.isListed = false;
    }
  }

  #takeFrom(flow: Flow): Packet | undefined {
    const packet = flow.head;
    if (packet === undefined) return undefined;
    flow.head = packet.next;
    if (flow.head === undefined) flow.tail = undefined;
    packet.next = undefined;
    this.#flowBacklogs[flow.index] = (this.#flowBacklogs[flow.index] ?? 0) - packet.length;
    this.#backlogBytes -= packet.length;
    this.#memoryBytes -= packet.bytes.length;
    this.#length--;
    return packet;
  }

  purge(): number {
    const count = this.#length;
    for (const list of [this.#newFlows, this.#oldFlows]) {
      for (let flow = list.first; flow !== undefined; flow = list.first) {
        list.removeFirst();
        flow.isListed = false;
        for (let packet = this.#takeFrom(flow); packet !== undefined; packet = this.#takeFrom(flow)) {
          this.onDrop?.(packet);
          packet.release();
        }
      }
    }
    for (const flow of this.#flows) flow?.codel.reset();
    return count;
  }

  // ---- what CoDel asks of a queue ----

  take(): Packet | undefined {
    return this.#current === undefined ? undefined : this.#takeFrom(this.#current);
  }

  enqueuedAtUs(packet: Packet): number {
    return packet.enqueuedAtUs;
  }

  mark(packet: Packet): boolean {
    if (!markCongestionExperienced(packet)) return false;
    this.#stats.ecnMarks++;
    return true;
  }

  drop(packet: Packet): void {
    this.#stats.drops++;
    this.onDrop?.(packet);
    packet.release();
  }
}
