import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { neverUs } from '../../../src/base/clock.ts';
import { Random } from '../../../src/base/random.ts';
import { defaultTxQueueSettings } from '../../../src/bql/tx-queue.ts';
import { cdcEther } from '../../../src/minidrivers/cdc-ether.ts';
import { cdcNcm } from '../../../src/minidrivers/cdc-ncm.ts';
import type { DriverBinding, Minidriver } from '../../../src/usbnet/minidriver.ts';
import type { TransferStatus } from '../../../src/usbnet/transfer.ts';
import type { SubmitResult, UsbDevice } from '../../../src/usbnet/transport.ts';
import type { Outcome } from '../../../src/usbnet/usbnet.ts';
import { cdcDevice, contextFor, converse, obliging } from '../minidrivers/conversation.ts';
import { NetifBench } from './bench.ts';

/**
 * Anything that can happen to an interface, in any order, over a device that the test is. After every step the books
 * must be right: what BQL holds for in flight is what is on the bus, byte for byte. At the end everything comes back
 * to zero, and the interface works.
 */

const interrupt = 0x83;
const linkUp = Uint8Array.of(0xa1, 0, 1, 0, 0, 0, 0, 0);
const linkDown = Uint8Array.of(0xa1, 0, 0, 0, 0, 0, 0, 0);

const statuses: fc.Arbitrary<TransferStatus> = fc.oneof(
  { weight: 12, arbitrary: fc.constant('completed' as const) },
  {
    weight: 4,
    arbitrary: fc.constantFrom('stall', 'cancelled', 'protocol-error', 'overflow', 'timed-out', 'failed'),
  },
);

const steps = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      count: fc.integer({ min: 1, max: 100 }),
      length: fc.oneof(fc.integer({ min: 14, max: 1514 }), fc.constantFrom(512, 1024, 1514)),
      priority: fc.constantFrom(0, 2, 6),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      direction: fc.constantFrom('out', 'in'),
      picks: fc.array(fc.tuple(fc.nat(400), statuses), { minLength: 1, maxLength: 40 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('end-cancelled' as const), limit: fc.nat(400) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('answer' as const), status: statuses }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      us: fc.oneof(fc.integer({ min: 0, max: 5000 }), fc.constantFrom(125_000, 1_000_000, 6_000_000)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('notify' as const), up: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('interrupt-fails' as const), status: statuses }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('suspend' as const), automatic: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('resume' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('open' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('bql' as const), enabled: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('mtu' as const), bytes: fc.integer({ min: 68, max: 2034 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('refuse' as const), chance: fc.constantFrom(0, 0, 0.1, 0.9) }),
  },
);
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const refusals: readonly SubmitResult[] = ['stall', 'no-memory', 'failed'];

class Soak {
  readonly bench: NetifBench;
  readonly #random = new Random(7);
  #refusalChance = 0;
  #tag = 0;
  #accepted = 0;
  readonly #reported = new Set<number>();
  readonly #hasTimer: boolean;

  constructor(minidriver: Minidriver, txTimerUs: number) {
    this.bench = new NetifBench({ bound: bindTo(minidriver, txTimerUs) });
    this.#hasTimer = txTimerUs > 0;
    this.bench.transport.submitResult = () =>
      this.#random.chance(this.#refusalChance)
        ? (refusals[this.#random.integer(0, refusals.length - 1)] ?? 'failed')
        : 'ok';
    this.bench.open();
    this.#notify(true);
  }

  #notify(up: boolean): void {
    const { transport, nowUs } = this.bench;
    if (transport.outstandingOn(interrupt).length > 0) {
      transport.receive(interrupt, up ? linkUp : linkDown, nowUs);
    }
    this.bench.poll();
  }

  #send(count: number, length: number, priority: number): void {
    for (let i = 0; i < count; i++) {
      if (this.bench.transmit(length, { priority, tag: ++this.#tag })) this.#accepted++;
    }
  }

  take(step: Step): void {
    const { bench } = this;
    const { transport, netif } = bench;
    switch (step.kind) {
      case 'send':
        this.#send(step.count, step.length, step.priority);
        break;
      case 'end':
        for (const [pick, status] of step.picks) {
          const out = step.direction === 'out' ? bench.tx : bench.rx;
          const transfer = out[pick % Math.max(1, out.length)];
          if (transfer !== undefined) transport.end(transfer, status, bench.nowUs);
        }
        break;
      case 'end-cancelled':
        for (const transfer of transport.cancelled.slice(0, step.limit)) bench.end(transfer, 'cancelled');
        break;
      case 'answer':
        if (transport.pendingRequest !== undefined) transport.answer(step.status, bench.nowUs);
        break;
      case 'wait':
        bench.advance(step.us);
        break;
      case 'notify':
        this.#notify(step.up);
        break;
      case 'interrupt-fails': {
        const [transfer] = transport.outstandingOn(interrupt);
        if (transfer !== undefined) bench.end(transfer, step.status);
        break;
      }
      case 'suspend':
        netif.usbnet.suspend(step.automatic, bench.nowUs);
        break;
      case 'resume':
        netif.usbnet.resume(bench.nowUs);
        break;
      case 'stop':
        bench.stop();
        break;
      case 'open':
        bench.startOpen();
        break;
      case 'bql':
        netif.txQueue.configure({ ...defaultTxQueueSettings, bql: step.enabled }, bench.nowUs);
        break;
      case 'mtu':
        netif.usbnet.changeMtu(step.bytes, bench.nowUs);
        break;
      case 'refuse':
        this.#refusalChance = step.chance;
        break;
    }
    bench.poll();
    this.check();
  }

  check(): void {
    const { transport, netif, tx, rx, sent } = this.bench;
    const onTheBus = tx.reduce((sum, { length }) => sum + length, 0);
    demand(netif.txQueue.inflightBytes === onTheBus, `${netif.txQueue.inflightBytes} bytes, not ${onTheBus}`);
    demand(netif.usbnet.txTransfersInflight === tx.length, 'usbnet knows of other transfers OUT');
    demand(netif.usbnet.rxTransfersInflight === rx.length, 'usbnet knows of other transfers IN');
    demand(transport.submits === transport.ends + transport.outstanding.length, 'a transfer was lost');
    // Held: what waits in the qdisc, and one packet that did not fit an NTB.
    demand(netif.packets.inUse - netif.qdisc.length <= 1, `${netif.packets.inUse} packets are in use`);
    for (const { tag } of sent.splice(0)) {
      demand(!this.#reported.has(tag), `packet ${tag} is reported twice`);
      this.#reported.add(tag);
    }
    demand(this.#reported.size <= this.#accepted, 'more packets are reported than were taken');
  }

  /** Lets everything that is out come back well, for as long as it takes. */
  #settle(isSettled: () => boolean): void {
    const { bench } = this;
    for (let i = 0; i < 400 && !isSettled(); i++) {
      if (bench.transport.pendingRequest !== undefined) bench.transport.answer('completed', bench.nowUs);
      bench.transport.endCancelled(bench.nowUs);
      for (const transfer of bench.tx) bench.end(transfer);
      bench.advance(i < 50 ? 3000 : 200_000);
    }
    this.check();
    demand(isSettled(), 'it does not come to rest');
  }

  #stop(): Balance {
    const outcome = this.bench.stop();
    this.#settle(() => outcome() !== undefined);
    return this.#balance(outcome());
  }

  #balance(outcome: Outcome | undefined): Balance {
    const { netif, transport } = this.bench;
    return {
      failure: failureOf(outcome),
      inflightBytes: netif.txQueue.inflightBytes,
      dqlInflight: netif.txQueue.dql.inflight,
      packetsInUse: netif.packets.inUse,
      outstanding: transport.outstanding.length,
    };
  }

  /** Lets everything come back and takes the interface down. */
  comeToRest(): Balance {
    const { bench } = this;
    const { transport } = bench;
    this.#refusalChance = 0;
    this.#settle(() => transport.cancelled.length === 0 && transport.pendingRequest === undefined);
    const balance = this.#stop();
    bench.netif.usbnet.resume(bench.nowUs);
    return balance;
  }

  /** Opens it again, sends 200 packets and takes in a frame, then takes it down. */
  useAgain(): Balance {
    const { bench } = this;
    const { netif, transport } = bench;
    const outcome = bench.startOpen();
    this.#settle(() => outcome() !== undefined);
    demand(failureOf(outcome()) === undefined, `it does not open: ${String(failureOf(outcome()))}`);
    this.#notify(true);
    // Without BQL the driver's whole queue is used: a transfer that was lost would be missed.
    netif.txQueue.configure({ ...defaultTxQueueSettings, bql: false }, bench.nowUs);
    const { txPackets, txDropped } = netif.usbnet.stats;
    this.#send(200, 1000, 0);
    this.#settle(() => bench.tx.length === 0 && netif.packets.inUse === 0 && netif.pollAtUs() === neverUs);
    const sent = netif.usbnet.stats.txPackets - txPackets;
    const drops = netif.usbnet.stats.txDropped - txDropped;
    // What the kernel's timer would send while the driver's queue is full is dropped, as there (spec 2.13.1).
    demand(sent === 200 || (this.#hasTimer && drops > 0 && sent > 0), `${sent} packets of 200 were sent`);
    const [transfer] = bench.rx;
    demand(transfer !== undefined, 'no frames are asked for');
    transport.end(transfer, 'completed', bench.nowUs, 0);
    bench.poll();
    // For transfers of a few sizes: what leaks would be more.
    demand(netif.usbnet.transfersMade < 6000, `${netif.usbnet.transfersMade} transfers were made`);
    return this.#stop();
  }

  unplug(afterReports: boolean): Balance {
    const { bench } = this;
    const { transport } = bench;
    if (afterReports) for (const transfer of transport.outstanding) bench.end(transfer, 'gone');
    transport.unplug(bench.nowUs);
    bench.poll();
    const outcome = bench.stop();
    bench.advance(10_000);
    for (const transfer of transport.outstanding) bench.end(transfer, 'gone');
    bench.advance(20_000_000);
    return this.#balance(outcome());
  }
}

/** What is left when all has come to rest. */
interface Balance {
  readonly failure: string | undefined;
  readonly inflightBytes: number;
  readonly dqlInflight: number;
  readonly packetsInUse: number;
  readonly outstanding: number;
}

const balanced: Balance = {
  failure: undefined,
  inflightBytes: 0,
  dqlInflight: 0,
  packetsInUse: 0,
  outstanding: 0,
};

function demand(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new Error(otherwise);
}

/** How it failed; undefined if it did not. */
function failureOf(outcome: Outcome | undefined): string | undefined {
  if (outcome === undefined) return 'it has not ended';
  return outcome.ok ? undefined : String(outcome.error);
}

function bindTo(
  minidriver: Minidriver,
  txTimerUs = 0,
): { readonly device: UsbDevice; readonly binding: DriverBinding } {
  const device = cdcDevice({ subclass: minidriver.name === 'cdc_ncm' ? 0x0d : 0x06 });
  const procedure = minidriver.bind(contextFor(device, minidriver.name, txTimerUs));
  const { value: binding } = converse(procedure, obliging());
  if (binding === undefined) throw new Error('it does not bind');
  return { device, binding };
}

describe.each([
  ['cdc_ether', cdcEther, 0],
  ['cdc_ncm', cdcNcm, 0],
  ['cdc_ncm with the kernel’s timer', cdcNcm, 400],
] as const)('%s', (_name, minidriver, txTimerUs) => {
  test('every transfer ends once, the books are right at every step, and all comes back', () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 120 }), (sequence) => {
        const soak = new Soak(minidriver, txTimerUs);
        for (const step of sequence) soak.take(step);
        expect(soak.comeToRest()).toEqual(balanced);
        expect(soak.useAgain()).toEqual(balanced);
      }),
      { numRuns: 60 },
    );
  });

  test('unplugged at any moment it stops cleanly', () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40 }), fc.boolean(), (sequence, afterReports) => {
        const soak = new Soak(minidriver, txTimerUs);
        for (const step of sequence) soak.take(step);
        expect(soak.unplug(afterReports)).toEqual(balanced);
      }),
      { numRuns: 60 },
    );
  });
});
