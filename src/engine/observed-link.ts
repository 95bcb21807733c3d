import { neverUs, type Polled } from '../base/clock.ts';
import { formatBitRate } from '../base/units.ts';
import type { Fact } from '../contract/session.ts';
import type { PingSettings } from '../contract/settings.ts';
import { probeColumns, probeIndex } from '../contract/telemetry.ts';
import { OsPing } from '../observe/os-ping.ts';
import type { PingResult } from '../observe/ping-tracker.ts';
import { ipv4AddressIsHost, parseIpv4Address } from '../wire/ipv4-address.ts';
import type { MeasurementObserver } from './measurement-path.ts';
import type { ObserveSystem } from './observe-system.ts';
import { pingTiming } from './ping-timing.ts';

/** Addresses and routes are looked at every so many times. */
const addressEvery = 4;
/** A netdev whose link does not come up in this time has a problem worth telling. */
const carrierPatienceUs = 10_000_000;
/** So many probes in a row without an answer: the target is silent. */
const silentProbes = 5;

export interface ObservedLinkOptions {
  readonly netdev: string;
  readonly system: ObserveSystem;
  readonly observer: MeasurementObserver;
  /** Time 0 of the telemetry. */
  readonly startUs: number;
  readonly ping: PingSettings;
  /** IPv4 address to ping; undefined: the gateway. */
  readonly wantedTarget: string | undefined;
  readonly run: (action: (nowUs: number) => void) => void;
  /** Waits for an answer; none comes once it is over. */
  readonly later: <Value>(promise: Promise<Value>, handle: (value: Value, nowUs: number) => void) => void;
  readonly tell: (facts: readonly Fact[]) => void;
}

/**
 * What leads from a kernel's netdev to a round trip: its link, the addresses and routes that the system has given it,
 * the target that follows from them, and the system's ping.
 */
export class ObservedLink implements Polled {
  readonly #options: ObservedLinkOptions;
  readonly #observer: MeasurementObserver;
  readonly #name: string;
  readonly #ping: OsPing;
  readonly #probeRow = new Float64Array(probeColumns.length).fill(Number.NaN);
  #looks = 0;
  #carrier: boolean | undefined;
  #isCarrierKnown = false;
  #carrierDueAtUs = neverUs;
  /** Undefined: not looked yet. */
  #addresses: string | undefined;
  #gateway: string | undefined;
  #target: string | undefined;
  #reason = '';
  #hasAnswered = false;
  #lostInARow = 0;

  constructor(options: ObservedLinkOptions) {
    const { netdev, system, observer, ping, run } = options;
    this.#options = options;
    this.#observer = observer;
    this.#name = netdev;
    this.#ping = new OsPing(pingTiming(ping), {
      netdev,
      start: system.startProgram,
      run,
      wallClockUs: system.wallClockUs,
      handleResult: (result) => this.#handleProbe(result),
      handleTrouble: (trouble) => {
        if (trouble === undefined) observer.handleCured('no-ping');
        else observer.handleProblem({ id: 'no-ping', severity: 'warning', ...trouble });
      },
    });
  }

  configurePing(ping: PingSettings, nowUs: number): void {
    this.#ping.configure(pingTiming(ping), nowUs);
  }

  close(): void {
    this.#carrierDueAtUs = neverUs;
    this.#ping.close();
  }

  // ---- link and addresses ----

  /** To be called a few times a second: some of what is read waits for the driver, and so is read aside. */
  look(): void {
    const { system, later } = this.#options;
    const { files } = system;
    later(files.carrier(this.#name), (carrier, nowUs) => this.#handleCarrier(carrier, nowUs));
    if (this.#looks++ % addressEvery !== 0) return;
    later(files.gateway(this.#name), (gateway, nowUs) => this.#handleRoutes(gateway, nowUs));
  }

  #handleCarrier(carrier: boolean | undefined, nowUs: number): void {
    if (this.#isCarrierKnown && carrier === this.#carrier) return;
    const word = carrier === true ? 'carrier on' : 'carrier off';
    if (this.#isCarrierKnown) this.#observer.handleEvent('carrier', word, nowUs);
    this.#isCarrierKnown = true;
    this.#carrier = carrier;
    if (carrier === true) this.#handleLinkUp();
    else this.#handleLinkDown(carrier, nowUs);
    this.#chooseTarget(nowUs);
  }

  #handleLinkUp(): void {
    const { system, later } = this.#options;
    this.#carrierDueAtUs = neverUs;
    this.#observer.handleCured('no-carrier');
    this.#observer.handleStage('carrier', 'done', 'link up');
    later(system.files.linkBitsPerSecond(this.#name), (rate) => {
      if (rate === undefined || this.#carrier !== true) return;
      this.#observer.handleStage('carrier', 'done', `link up, ${formatBitRate(rate)}`);
    });
  }

  #handleLinkDown(carrier: false | undefined, nowUs: number): void {
    const words = carrier === false ? 'waiting for the link' : `${this.#name} is switched off`;
    this.#observer.handleStage('carrier', 'active', words);
    this.#carrierDueAtUs = nowUs + carrierPatienceUs;
  }

  #reportNoCarrier(): void {
    this.#carrierDueAtUs = neverUs;
    const isOff = this.#carrier === undefined;
    this.#observer.handleProblem({
      id: 'no-carrier',
      severity: 'warning',
      message: isOff ? `${this.#name} is switched off.` : `${this.#name} reports no link.`,
      remedy: isOff
        ? `Switch it on:\nsudo ip link set ${this.#name} up`
        : 'An Ethernet adapter needs its cable; a modem needs a SIM, a signal and a data connection.',
    });
  }

  #handleRoutes(gateway: string | undefined, nowUs: number): void {
    const addresses = this.#options.system.addressesOf(this.#name).join(', ');
    if (addresses === this.#addresses && gateway === this.#gateway) return;
    this.#addresses = addresses;
    this.#gateway = gateway;
    const words = addresses === '' ? 'no IPv4 address' : `${addresses}, set by the system`;
    this.#options.tell([
      { group: 'network', name: 'Address', value: words },
      { group: 'network', name: 'Gateway', value: gateway ?? 'none' },
    ]);
    this.#observer.handleStage('address', addresses === '' ? 'active' : 'done', words);
    this.#chooseTarget(nowUs);
  }

  // ---- target ----

  #chooseTarget(nowUs: number): void {
    const wanted = this.#options.wantedTarget;
    if (this.#addresses === undefined || !this.#isCarrierKnown) return;
    const wantedAddress = wanted === undefined ? undefined : parseIpv4Address(wanted);
    if (wanted !== undefined && wantedAddress === undefined) {
      this.#setTarget(undefined, `"${wanted}" is not an IPv4 address`, nowUs);
    } else if (wantedAddress !== undefined && !ipv4AddressIsHost(wantedAddress)) {
      this.#setTarget(undefined, `${wanted} is not the address of a host`, nowUs);
    } else if (this.#carrier !== true) {
      // What is lost without a link says nothing of the queue.
      this.#setTarget(undefined, 'there is no link', nowUs);
    } else if (this.#addresses === '') {
      this.#setTarget(undefined, `${this.#name} has no IPv4 address`, nowUs);
    } else {
      const target = wanted ?? this.#gateway;
      const reason = target === undefined ? `no default route leads through ${this.#name}` : '';
      this.#setTarget(target, reason, nowUs);
    }
  }

  #setTarget(target: string | undefined, reason: string, nowUs: number): void {
    if (target === this.#target && reason === this.#reason) return;
    this.#target = target;
    this.#reason = reason;
    this.#hasAnswered = false;
    this.#lostInARow = 0;
    this.#ping.setTarget(target, nowUs);
    this.#observer.handleCured('target-silent');
    if (target !== undefined) {
      this.#observer.handleCured('no-target');
      this.#observer.handleStage('target', 'active', `${target} is being asked`);
      this.#options.tell([{ group: 'network', name: 'Target', value: target }]);
      return;
    }
    const isUp = this.#carrier === true;
    this.#observer.handleStage('target', isUp ? 'failed' : 'pending', reason);
    if (isUp) this.#reportNoTarget(reason);
    else this.#observer.handleCured('no-target');
  }

  #reportNoTarget(reason: string): void {
    this.#observer.handleProblem({
      id: 'no-target',
      severity: 'warning',
      message: `There are no round trips: ${reason}.`,
      remedy:
        this.#addresses === ''
          ? 'Let the system configure the interface; its address and route are seen by themselves.'
          : 'Name a host behind it that answers pings (--target ADDRESS).',
    });
  }

  // ---- probes ----

  #handleProbe(result: PingResult): void {
    const row = this.#probeRow;
    row[probeIndex.timeUs] = result.sentAtUs - this.#options.startUs;
    row[probeIndex.sequence] = result.sequence;
    row[probeIndex.rttUs] = result.rttUs;
    this.#observer.handleProbe(row);
    if (Number.isNaN(result.rttUs)) this.#handleLost();
    else this.#handleAnswer();
  }

  #handleAnswer(): void {
    this.#lostInARow = 0;
    this.#observer.handleCured('target-silent');
    if (this.#hasAnswered || this.#target === undefined) return;
    this.#hasAnswered = true;
    this.#observer.handleStage('target', 'done', `${this.#target} answers`);
  }

  #handleLost(): void {
    if (++this.#lostInARow < silentProbes || this.#target === undefined) return;
    this.#observer.handleProblem({
      id: 'target-silent',
      severity: 'warning',
      message: `${this.#target} does not answer pings.`,
      remedy: 'Choose a host that does (--target ADDRESS).',
    });
  }

  // ---- time ----

  poll(nowUs: number): void {
    this.#ping.poll(nowUs);
    if (nowUs >= this.#carrierDueAtUs) this.#reportNoCarrier();
  }

  pollAtUs(): number {
    return Math.min(this.#ping.pollAtUs(), this.#carrierDueAtUs);
  }
}
