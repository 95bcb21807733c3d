import type { Polled } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import { Random } from '../../../src/base/random.ts';
import { VirtualClock } from '../../../src/base/virtual-clock.ts';
import { defaultTxQueueSettings } from '../../../src/bql/tx-queue.ts';
import type { Quirk } from '../../../src/minidrivers/device-rule.ts';
import { matchDevice, minidriverOf } from '../../../src/minidrivers/registry.ts';
import { Netif } from '../../../src/netif/netif.ts';
import { PfifoFast } from '../../../src/netif/pfifo-fast.ts';
import { findPersonality } from '../../../src/sim/catalogue.ts';
import { createSimDevice, type RunningSimDevice } from '../../../src/sim/create-sim-device.ts';
import type { SimPersonality } from '../../../src/sim/personality.ts';
import type { DriverBinding } from '../../../src/usbnet/minidriver.ts';
import { ProcedureRunner } from '../../../src/usbnet/procedure-runner.ts';
import type { Transport } from '../../../src/usbnet/transport.ts';
import type { Outcome } from '../../../src/usbnet/usbnet.ts';
import { etherTypeIpv4, writeEthernet } from '../../../src/wire/ethernet.ts';
import { writeIpv4 } from '../../../src/wire/ipv4.ts';
import { writeUdp } from '../../../src/wire/udp.ts';
import { pattern } from '../sim/bare-device.ts';

const echoPort = 7;
const headerBytes = 42;

/** A personality of the catalogue with a fast link and much room, and with some of it changed. */
export function fast(name: string, differing: Partial<SimPersonality> = {}): SimPersonality {
  const found = findPersonality(name);
  if (found === undefined) throw new Error(`no personality "${name}"`);
  const link = { ...found.link, upBitsPerSecond: 1e9, downBitsPerSecond: 1e9, downQueueBytes: 1 << 20 };
  return {
    ...found,
    link: { ...link, delayUs: 50 },
    fifoBytes: 64 * 1024,
    hostQueueBytes: 1 << 20,
    ...differing,
  };
}

/** A virtual device, and the minidriver that its descriptors call for on all that is above it, in virtual time. */
export class DrivenDevice {
  readonly clock = new VirtualClock(0);
  readonly device: RunningSimDevice;
  readonly netif: Netif;
  readonly binding: DriverBinding;
  readonly carriers: boolean[] = [];
  /** UDP payloads that came back from the far host's echo. */
  readonly echoes: Uint8Array[] = [];
  readonly #mac: Uint8Array;

  /** @throws what the driver throws if the device can't be bound */
  constructor(
    personality: SimPersonality,
    options: {
      readonly quirks?: readonly Quirk[];
      readonly seed?: number;
      /** Puts another transport around the device's. */
      readonly wrap?: (transport: Transport) => Transport & Polled;
    } = {},
  ) {
    this.device = createSimDevice(personality, { seed: options.seed ?? 1, nowUs: 0 });
    for (const part of this.device.polled) this.clock.add(part);
    const wrapped = options.wrap?.(this.device.transport);
    if (wrapped !== undefined) this.clock.add(wrapped);
    const transport = wrapped ?? this.device.transport;
    const { descriptor, configuration } = transport.device;
    const [match] = matchDevice({ descriptor, configurations: [configuration] });
    if (match === undefined) throw new Error('no minidriver takes it');
    const runner = new ProcedureRunner(transport);
    transport.setHandler({
      handleTransferDone: () => {},
      handleRequestDone: (result, nowUs) => runner.handleRequestDone(result, nowUs),
      handleGone: (nowUs) => runner.handleGone(nowUs),
    });
    this.clock.add(runner);
    const procedure = minidriverOf(match.driver).bind({
      device: transport.device,
      match: { ...match, quirks: [...match.quirks, ...(options.quirks ?? [])] },
      tuning: { txTimerUs: 0 },
      random: new Random(1),
      log: silentLog,
    });
    let bound: DriverBinding | undefined;
    let failure: unknown;
    runner.start(procedure, 0, (outcome) => {
      if (outcome.ok) bound = outcome.value;
      else failure = outcome.error;
    });
    this.runWhile(() => bound === undefined && failure === undefined, 60_000_000);
    this.clock.remove(runner);
    if (bound === undefined) throw failure;
    this.binding = bound;
    this.#mac = bound.macAddress ?? Uint8Array.of(2, 0, 0, 0, 0, 1);
    this.netif = new Netif({
      transport,
      runner,
      binding: bound,
      macAddress: this.#mac,
      settings: defaultTxQueueSettings,
      qdisc: new PfifoFast(),
      observer: {
        handleReceive: (bytes, offset, length) => this.#handleReceive(bytes, offset, length),
        handleCarrier: (on) => {
          this.carriers.push(on);
        },
        handlePacketDequeued: () => {},
        handlePacketSent: () => {},
        handlePacketDropped: () => {},
      },
      log: silentLog,
      nowUs: this.clock.nowUs(),
    });
    transport.setHandler(this.netif.usbnet);
    this.clock.add(this.netif);
  }

  run(us: number): void {
    this.clock.runUntil(this.clock.nowUs() + us);
  }

  /** Runs in small steps until the condition no longer holds, or for so long. */
  runWhile(condition: () => boolean, limitUs: number): void {
    const endUs = this.clock.nowUs() + limitUs;
    while (condition() && this.clock.nowUs() < endUs) this.run(1000);
  }

  open(): Outcome {
    return this.#wait((done) => this.netif.open(this.clock.nowUs(), done));
  }

  stop(): Outcome {
    return this.#wait((done) => this.netif.stop(this.clock.nowUs(), done));
  }

  #wait(start: (done: (outcome: Outcome) => void) => void): Outcome {
    let outcome: Outcome | undefined;
    start((value) => {
      outcome = value;
    });
    this.runWhile(() => outcome === undefined, 120_000_000);
    if (outcome === undefined) throw new Error('it never ended');
    return outcome;
  }

  /** Queues a UDP datagram for the far host's echo. False: dropped. */
  send(payload: Uint8Array): boolean {
    const packet = this.netif.packets.take();
    if (packet === undefined) throw new Error('no packet');
    const { address, clientAddress, macAddress } = this.device.farHost;
    const { bytes } = packet;
    bytes.set(payload, headerBytes);
    writeEthernet(bytes, 0, macAddress, this.#mac, etherTypeIpv4);
    writeUdp(bytes, 34, 4000, echoPort, payload.length, clientAddress, address);
    writeIpv4(bytes, 14, 0, 8 + payload.length, 1, true, 64, 17, clientAddress, address);
    packet.length = headerBytes + payload.length;
    return this.netif.transmit(packet, this.clock.nowUs());
  }

  #handleReceive(bytes: Uint8Array, offset: number, length: number): void {
    this.echoes.push(bytes.slice(offset + headerBytes, offset + length));
  }

  /**
   * Sends `bursts` times datagrams of every size that matters for packet boundaries, and waits for all that come back.
   * Returns what was sent.
   */
  exchange(bursts = 8): readonly Uint8Array[] {
    this.echoes.length = 0;
    const sent: Uint8Array[] = [];
    for (let burst = 0; burst < bursts; burst++) {
      for (let i = 0; i < 24; i++) {
        const payload = pattern((burst * 191 + i * 61 + 18) % 1473, burst * 100 + i);
        sent.push(payload);
        this.send(payload);
      }
      this.run(3000);
    }
    this.runWhile(() => this.echoes.length < sent.length, 2_000_000);
    this.run(10_000);
    return sent;
  }
}
