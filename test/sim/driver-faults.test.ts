/**
 * A thousand faults for each driver, at random moments under load: unplugged, halted, short, babbling, refused, failed,
 * late and repeated transfers, requests that fail, silence, a cable that is pulled. Seeds are fixed. After each episode
 * every transfer has ended once, BQL stands at zero, and, but for a device that is gone, everything works again.
 */
import { describe, expect, test } from 'vitest';
import { bytesEqual } from '../../src/base/bytes.ts';
import type { Polled } from '../../src/base/clock.ts';
import { Random } from '../../src/base/random.ts';
import { FaultTransport } from '../../src/transports/fault-transport.ts';
import type { FaultRule, TransportFault } from '../../src/transports/transport-fault.ts';
import type { Transfer } from '../../src/usbnet/transfer.ts';
import type {
  DeviceRequest,
  RequestResult,
  SubmitResult,
  Transport,
  TransportHandler,
  UsbDevice,
} from '../../src/usbnet/transport.ts';
import { DrivenDevice, fast } from '../unit/minidrivers/driven-device.ts';
import { pattern } from '../unit/sim/bare-device.ts';

const faultsWanted = 1000;
const limitMs = 300_000;
/** Rules strike among so many of the first transfers of an endpoint. */
const lastRuleAt = 100;
const noBytes = new Uint8Array(0);

/** Brings, in place of what came, what came before; so often. */
class RepeatingTransport implements Transport, TransportHandler, Polled {
  readonly device: UsbDevice;
  readonly #inner: FaultTransport;
  readonly #random: Random;
  readonly #repeats: (endpointAddress: number) => boolean;
  readonly #last = new Map<number, Uint8Array>();
  #handler: TransportHandler | undefined;
  left = 0;
  struck = 0;
  /** Transfers of each bulk endpoint that were submitted, taken or not: what rules count. */
  readonly #submitted: Map<number, number>;

  /** @param repeats the endpoints whose transfers may be repeated */
  constructor(inner: FaultTransport, random: Random, repeats: (endpointAddress: number) => boolean) {
    this.#inner = inner;
    this.#repeats = repeats;
    this.device = inner.device;
    this.#random = random;
    this.#submitted = new Map(endpointsOf(inner.device, ['bulk']).map((address) => [address, 0]));
    inner.setHandler(this);
  }

  get leastSubmitted(): number {
    return Math.min(...this.#submitted.values());
  }

  setHandler(handler: TransportHandler): void {
    this.#handler = handler;
  }
  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    return this.#inner.makeTransfer(endpointAddress, capacity, maxPackets);
  }
  submit(transfer: Transfer, nowUs: number): SubmitResult {
    const { endpointAddress } = transfer;
    const submitted = this.#submitted.get(endpointAddress);
    if (submitted !== undefined) this.#submitted.set(endpointAddress, submitted + 1);
    return this.#inner.submit(transfer, nowUs);
  }
  cancel(transfer: Transfer, nowUs: number): void {
    this.#inner.cancel(transfer, nowUs);
  }
  request(request: DeviceRequest, nowUs: number): void {
    this.#inner.request(request, nowUs);
  }

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    const counts = this.#repeats(transfer.endpointAddress) && transfer.isIn;
    if (counts && transfer.status === 'completed' && transfer.actualLength > 0) {
      const before = this.#last.get(transfer.endpointAddress);
      if (before !== undefined && this.left > 0 && this.#random.chance(0.1)) {
        this.left--;
        this.struck++;
        const bytes = before.subarray(0, transfer.buffer.length);
        transfer.buffer.set(bytes);
        transfer.actualLength = bytes.length;
      }
      this.#last.set(transfer.endpointAddress, transfer.buffer.slice(0, transfer.actualLength));
    }
    this.#handler?.handleTransferDone(transfer, nowUs);
  }
  handleRequestDone(result: RequestResult, nowUs: number): void {
    this.#handler?.handleRequestDone(result, nowUs);
  }
  handleGone(nowUs: number): void {
    this.#handler?.handleGone(nowUs);
  }

  poll(nowUs: number): void {
    this.#inner.poll(nowUs);
  }
  pollAtUs(): number {
    return this.#inner.pollAtUs();
  }
}

/** What must hold in an episode; the test shows its words. */
function demand(holds: boolean, words: string): void {
  if (!holds) throw new Error(words);
}

function pick<T>(random: Random, choices: readonly T[]): T {
  const choice = choices[random.integer(0, choices.length - 1)];
  if (choice === undefined) throw new Error('nothing to choose from');
  return choice;
}

function anyFault(random: Random): TransportFault {
  return pick<TransportFault>(random, [
    { kind: 'end', status: 'stall' },
    { kind: 'end', status: 'protocol-error' },
    { kind: 'end', status: 'timed-out' },
    { kind: 'end', status: 'failed' },
    { kind: 'truncate', bytes: random.integer(0, 1500) },
    { kind: 'babble' },
    { kind: 'halt' },
    { kind: 'delay', us: random.integer(1, 30_000) },
    { kind: 'refuse', result: 'no-memory' },
    { kind: 'refuse', result: 'failed' },
    { kind: 'refuse', result: 'stall' },
  ]);
}

function endpointsOf(device: UsbDevice, types: readonly string[]): readonly number[] {
  return device.configuration.interfaces.flatMap(({ altSettings }) =>
    altSettings.flatMap(({ endpoints }) =>
      endpoints.filter(({ type }) => types.includes(type)).map(({ address }) => address),
    ),
  );
}

interface FaultyDevice {
  readonly name: string;
  /** What its interrupt endpoint says is said again; else what is lost there is lost. */
  readonly tellsAgain: boolean;
}

/** One device from plugging in to its end, with a few faults on the way. */
class Episode {
  readonly #random: Random;
  readonly #driven: DrivenDevice;
  readonly #faults: FaultTransport;
  readonly #repeating: RepeatingTransport;
  readonly #unplugs: boolean;
  #others = 0;

  constructor({ name, tellsAgain }: FaultyDevice, seed: number) {
    const random = new Random(seed);
    this.#random = random;
    this.#unplugs = random.chance(0.2);
    let faults: FaultTransport | undefined;
    let repeating: RepeatingTransport | undefined;
    this.#driven = new DrivenDevice(fast(name), {
      seed,
      wrap: (transport) => {
        const endpoints = endpointsOf(transport.device, tellsAgain ? ['bulk', 'interrupt'] : ['bulk']);
        const rules = Array.from({ length: random.integer(3, 8) }, (): FaultRule => ({
          endpoint: pick(random, endpoints),
          atTransfer: random.integer(1, lastRuleAt),
          fault: anyFault(random),
        }));
        faults = new FaultTransport(transport, rules, seed);
        repeating = new RepeatingTransport(faults, random, (address) => endpoints.includes(address));
        return repeating;
      },
    });
    if (faults === undefined || repeating === undefined) throw new Error('it was not wrapped');
    this.#faults = faults;
    this.#repeating = repeating;
  }

  get faults(): number {
    const struck = Object.values(this.#faults.counters.struck).reduce((sum, count) => sum + count, 0);
    return struck + this.#repeating.struck + this.#others;
  }

  run(): void {
    const driven = this.#driven;
    demand(driven.open().ok, 'it could not be opened');
    driven.runWhile(() => !driven.netif.carrier, 30_000_000);
    this.#repeating.left = this.#random.integer(0, 2);
    for (let i = this.#random.integer(4, 10); i > 0; i--) {
      this.#load();
      if (this.#random.chance(0.15)) this.#injure();
    }
    if (this.#unplugs) {
      this.#load();
      driven.device.unplug(driven.clock.nowUs());
      this.#others++;
      driven.run(10_000);
      driven.stop();
    } else {
      this.#checkThatItWorks();
      demand(driven.stop().ok, 'it could not be stopped');
    }
    this.#checkBooks();
  }

  #load(): void {
    const { clock } = this.#driven;
    for (let i = this.#random.integer(1, 60); i > 0; i--) {
      this.#driven.send(pattern(this.#random.integer(0, 1472), clock.nowUs() & 0xff));
    }
    this.#driven.run(this.#random.integer(100, 8000));
  }

  /** What happens to the device rather than to a transfer. */
  #injure(): void {
    const { device, binding, clock } = this.#driven;
    const endpoint = pick(this.#random, [binding.bulkIn, binding.bulkOut]);
    this.#others++;
    switch (this.#random.integer(0, 3)) {
      case 0:
        device.injectStall(endpoint, clock.nowUs());
        break;
      case 1:
        device.injectSilence(endpoint, this.#random.integer(1000, 300_000), clock.nowUs());
        break;
      case 2:
        device.injectSilence(0, this.#random.integer(1000, 300_000), clock.nowUs());
        break;
      default:
        device.dropCarrier(clock.nowUs());
        this.#driven.run(this.#random.integer(1000, 400_000));
        device.raiseCarrier(clock.nowUs());
        break;
    }
  }

  /** All is well again, in a time that a person would wait. */
  #checkThatItWorks(): void {
    const driven = this.#driven;
    driven.run(1_000_000);
    // Rules that have not struck yet do it now, and half a frame gets its end.
    for (let i = 0; i < 100 && this.#repeating.leastSubmitted <= lastRuleAt; i++) driven.exchange(1);
    this.#repeating.left = 0;
    driven.exchange(2);
    driven.runWhile(() => !driven.netif.carrier, 10_000_000);
    driven.run(6_000_000);
    const { stats } = driven.netif.usbnet;
    const before = stats.rxErrors + stats.txErrors + stats.rxDropped + stats.txDropped;
    const sent = driven.exchange(4);
    demand(driven.echoes.length === sent.length, `${driven.echoes.length} of ${sent.length} came back`);
    const wrong = sent.findIndex((payload, i) => !bytesEqual(payload, driven.echoes[i] ?? noBytes));
    demand(wrong < 0, `datagram ${wrong} came back changed`);
    const after = stats.rxErrors + stats.txErrors + stats.rxDropped + stats.txDropped;
    demand(after === before, 'an error was counted although nothing went wrong any more');
  }

  #checkBooks(): void {
    const { netif, device, clock } = this.#driven;
    const { usbnet } = netif;
    demand(netif.txQueue.dql.inflight === 0, `BQL holds ${netif.txQueue.dql.inflight} bytes for in flight`);
    demand(usbnet.txTransfersInflight + usbnet.rxTransfersInflight === 0, 'transfers are still out');
    demand(netif.packets.inUse === 0, `${netif.packets.inUse} packets were not given back`);
    demand(this.#faults.outstanding === 0, `${this.#faults.outstanding} transfers never ended`);
    demand(this.#faults.counters.strayEnds === 0, 'a transfer ended twice');
    // No more transfers than may be in flight: those that fail are used again.
    const most = usbnet.txQlen + 2 + 2 * usbnet.rxQlen + 10;
    demand(usbnet.transfersMade <= most, `${usbnet.transfersMade} transfers were made`);
    this.#driven.run(2_000_000);
    const { upQueueFrames, downQueueFrames } = device.inspect(clock.nowUs());
    demand(upQueueFrames + downQueueFrames === 0, 'frames are left on the link');
  }
}

describe.each<FaultyDevice>([
  { name: 'modem-10mbit', tellsAgain: false },
  { name: 'adapter-100mbit', tellsAgain: false },
  { name: 'adapter-2500mbit', tellsAgain: true },
  { name: 'adapter-usb2-1gbe', tellsAgain: true },
  { name: 'adapter-usb2-100mbit', tellsAgain: true },
  { name: 'adapter-usb2-10mbit', tellsAgain: true },
  { name: 'tether-rndis', tellsAgain: false },
  { name: 'board-eem', tellsAgain: false },
  { name: 'stick-huawei', tellsAgain: false },
])('$name', (device) => {
  test(
    'a thousand faults',
    () => {
      let faults = 0;
      for (let seed = 1; faults < faultsWanted; seed++) {
        const episode = new Episode(device, seed);
        try {
          episode.run();
        } catch (error) {
          throw new Error(`episode ${seed}: ${String(error)}`, { cause: error });
        }
        faults += episode.faults;
        demand(seed < faultsWanted, 'the faults hardly ever strike');
      }
      expect(faults).toBeGreaterThanOrEqual(faultsWanted);
    },
    limitMs,
  );
});
