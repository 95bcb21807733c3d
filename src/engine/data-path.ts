import { neverUs } from '../base/clock.ts';
import { AppError, InvariantError } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import type { Log } from '../base/log.ts';
import { Random } from '../base/random.ts';
import { DqlAccountingError } from '../bql/dql.ts';
import type { TxQueueSettings } from '../bql/tx-queue.ts';
import type { Problem } from '../contract/problem.ts';
import type { StageName } from '../contract/session.ts';
import {
  type BqlSettings,
  changedSettings,
  defaultDownloadSettings,
  type LiveSettings,
  type QdiscSettings,
  type SessionSettings,
} from '../contract/settings.ts';
import { probeColumns, probeIndex } from '../contract/telemetry.ts';
import { DhcpClient, type DhcpLease, type DhcpObserver } from '../ip/dhcp-client.ts';
import { IpStack, type Ipv4Configuration } from '../ip/ip-stack.ts';
import { minidriverOf } from '../minidrivers/registry.ts';
import { Netif, type NetifObserver } from '../netif/netif.ts';
import { createQdisc } from '../netif/create-qdisc.ts';
import type { Qdisc } from '../netif/qdisc.ts';
import { Download } from '../probes/download.ts';
import { Load } from '../probes/load.ts';
import { Ping, type ProbeResult } from '../probes/ping.ts';
import type { DriverBinding, DriverTuning, Match } from '../usbnet/minidriver.ts';
import { DriverError, resetPort } from '../usbnet/procedure.ts';
import { type ProcedureOutcome, ProcedureRunner } from '../usbnet/procedure-runner.ts';
import type { Transfer } from '../usbnet/transfer.ts';
import type { RequestResult, Transport, TransportHandler } from '../usbnet/transport.ts';
import {
  formatIpv4Address,
  ipv4AddressIsHost,
  parseIpv4Address,
  parseIpv4Cidr,
} from '../wire/ipv4-address.ts';
import { formatMacAddress, zeroMacAddress } from '../wire/mac-address.ts';
import { describeDriver, describeQdisc } from './facts.ts';
import type { MeasurementObserver, MeasurementOptions, MeasurementPath } from './measurement-path.ts';
import { chooseTarget } from './measurement-target.ts';
import { pingTiming } from './ping-timing.ts';
import { describeTap, type TapLink } from './tap-link.ts';
import { ProgressWatch } from './progress-watch.ts';
import { type LagMeter, Sampler } from './sampler.ts';

/** A device whose link does not come up in this time has a problem worth telling. */
const carrierPatienceUs = 10_000_000;
/** Between giving the lease back and taking the interface down, so that the message still leaves. */
const farewellUs = 20_000;
/** So often the host's own counters of a TAP interface are read. */
const tapIntervalUs = 1_000_000;
/** So many probes in a row without an answer: the target is silent. */
const silentProbes = 5;
const pingIdentifier = 0x5153;

export interface DataPathOptions extends MeasurementOptions {
  readonly transport: Transport;
  readonly match: Match;
  readonly tuning: DriverTuning;
  readonly lag: LagMeter;
  readonly log: Log;
  /** A network interface of the host's own that shares the device's; closed with the path. */
  readonly tap?: TapLink | undefined;
  /** The transport has reported something: the loop is to look at the parts soon. */
  readonly wake: () => void;
}

function txQueueSettings(bql: BqlSettings): TxQueueSettings {
  return {
    bql: bql.enabled,
    limitMinBytes: bql.limitMinBytes,
    limitMaxBytes: bql.limitMaxBytes,
    holdTimeMs: bql.holdTimeMs,
  };
}

/** @param seed of the hash that tells flows apart */
function qdiscOf({ kind, ...fqCodel }: QdiscSettings, seed: number): Qdisc {
  return createQdisc({ name: kind, fqCodel }, seed);
}

/**
 * All that drives one device, without a clock: minidriver, usbnet and interface, IP host, probes and sampler. It is
 * told the time; a loop (real or simulated) polls it.
 */
export class DataPath implements MeasurementPath, TransportHandler, NetifObserver, DhcpObserver {
  readonly #options: DataPathOptions;
  readonly #observer: MeasurementObserver;
  readonly #runner: ProcedureRunner;
  readonly #random: Random;
  readonly #probeRow = new Float64Array(probeColumns.length);
  #settings: SessionSettings;
  #netif: Netif | undefined;
  #stack: IpStack | undefined;
  #dhcp: DhcpClient | undefined;
  #ping: Ping | undefined;
  #morePings: readonly Ping[] = [];
  #omittedProbes = 0;
  #load: Load | undefined;
  #download: Download | undefined;
  #sampler: Sampler | undefined;
  #target: number | undefined;
  #carrierDueAtUs = neverUs;
  #stopAtUs = neverUs;
  #whenStopped: ((error: AppError | undefined, nowUs: number) => void) | undefined;
  #gone = false;
  #failed = false;
  #watch: ProgressWatch | undefined;
  #tapDueAtUs = 0;
  #tapDropped = 0;
  #lostInARow = 0;
  #answered = false;

  constructor(options: DataPathOptions) {
    this.#options = options;
    this.#observer = options.observer;
    this.#settings = options.settings;
    this.#random = new Random(options.seed);
    this.#runner = new ProcedureRunner(options.transport);
    options.transport.setHandler(this);
  }

  get settings(): SessionSettings {
    return this.#settings;
  }
  /** The interface, once the device is bound. */
  get netif(): Netif | undefined {
    return this.#netif;
  }
  get load(): Load | undefined {
    return this.#load;
  }

  // ---- stages ----

  /** Binds the driver, brings the interface up, gets an address and measures. */
  start(nowUs: number): void {
    const { match, tuning, transport, log } = this.#options;
    this.#observer.handleStage('bind', 'active', match.driver);
    const procedure = minidriverOf(match.driver).bind({
      device: transport.device,
      match,
      tuning,
      random: this.#random,
      log,
    });
    this.#runner.start(procedure, nowUs, (outcome, atUs) => this.#handleBound(outcome, atUs));
  }

  #handleBound(outcome: ProcedureOutcome<DriverBinding>, nowUs: number): void {
    if (!outcome.ok) {
      this.#fail('bind', outcome.error);
      return;
    }
    if (this.#gone || this.#whenStopped !== undefined) return;
    const binding = outcome.value;
    const netif = this.#createNetif(binding, nowUs);
    if (netif === undefined) return;
    this.#netif = netif;
    netif.open(nowUs, (opened, atUs) => {
      if (opened.ok) this.#handleOpen(netif, binding, atUs);
      else this.#fail('bind', opened.error);
    });
  }

  #createNetif(binding: DriverBinding, nowUs: number): Netif | undefined {
    const { transport, log } = this.#options;
    try {
      return new Netif({
        transport,
        runner: this.#runner,
        binding,
        macAddress: binding.macAddress ?? this.#randomMacAddress(),
        settings: txQueueSettings(this.#settings.bql),
        qdisc: qdiscOf(this.#settings.qdisc, this.#options.seed),
        observer: this,
        log,
        nowUs,
      });
    } catch (error) {
      this.#fail('bind', error);
      return undefined;
    }
  }

  /** Locally administered, as the kernel makes one up. */
  #randomMacAddress(): Uint8Array {
    const address = new Uint8Array(6);
    this.#random.fill(address);
    address[0] = ((address[0] ?? 0) & 0xfe) | 0x02;
    return address;
  }

  #handleOpen(netif: Netif, binding: DriverBinding, nowUs: number): void {
    const { match, startUs, lag } = this.#options;
    this.#observer.handleStage('bind', 'done', `${match.driver}: ${match.reason}`);
    this.#observer.handleFacts(
      describeDriver(binding, netif, this.#options.transport.device, this.#settings.qdisc),
    );
    const { tap } = this.#options;
    const stack = new IpStack(netif, tap === undefined);
    this.#stack = stack;
    tap?.join(netif, (problem) => this.#reportTap(problem));
    this.#load = new Load(stack, () => netif.qdisc.length, this.#settings.load);
    this.#download = new Download(stack, this.#settings.download ?? defaultDownloadSettings);
    this.#ping = new Ping(stack, pingIdentifier, pingTiming(this.#settings.ping), (result) =>
      this.#handleProbe(result),
    );
    this.#morePings = (this.#settings.morePings ?? []).map(
      (settings, index) =>
        new Ping(
          stack,
          pingIdentifier + 1 + index,
          pingTiming({ ...settings, enabled: this.#settings.ping.enabled }),
          (result) => this.#handleMoreProbe(index, result),
          2 + index,
        ),
    );
    this.#sampler = new Sampler({
      netif,
      startUs,
      rateHz: this.#settings.sampleRateHz,
      lag,
      nowUs,
      recovery: this.#options.recovery,
      report: (row, atUs) => {
        this.#observer.handleSample(row);
        this.#watch?.look(atUs);
        this.#watchTap(atUs);
      },
    });
    this.#watch = new ProgressWatch({
      netif,
      observer: this.#observer,
      ladder: this.#options.recovery,
      answersOverdue: () => netif.carrier && this.#answered && this.#lostInARow >= silentProbes,
      nowUs,
    });
    this.#observer.handleStage('carrier', 'active', 'waiting for the link');
    if (netif.carrier) this.#handleLinkUp(nowUs);
    else this.#carrierDueAtUs = nowUs + carrierPatienceUs;
  }

  #handleLinkUp(nowUs: number): void {
    this.#carrierDueAtUs = neverUs;
    this.#observer.handleCured('no-carrier');
    const speed = this.#netif?.usbnet.txLinkBitsPerSecond;
    this.#observer.handleStage(
      'carrier',
      'done',
      speed === undefined ? 'link up' : `link up, ${speed / 1e6} Mbit/s`,
    );
    const { address } = this.#settings;
    if (address.mode === 'dhcp') {
      this.#observer.handleStage('address', 'active', 'asking for an address by DHCP');
      this.#dhcp ??= this.#stack === undefined ? undefined : new DhcpClient(this.#stack, this.#random, this);
      this.#dhcp?.start(nowUs);
      return;
    }
    const cidr = parseIpv4Cidr(address.cidr);
    const gateway = address.gateway === undefined ? undefined : parseIpv4Address(address.gateway);
    const hasAddress = cidr !== undefined && ipv4AddressIsHost(cidr.address);
    if (!hasAddress || (address.gateway !== undefined && gateway === undefined)) {
      const text = hasAddress ? (address.gateway ?? '') : address.cidr;
      this.#fail(
        'address',
        new AppError('bad-input', `"${text}" is not an IPv4 address of the form 10.9.0.2/24`),
      );
      return;
    }
    this.#handleAddress({ ...cidr, gateway }, 'set by hand', nowUs);
  }

  #handleAddress(configuration: Ipv4Configuration, how: string, nowUs: number): void {
    const { address, prefixLength, gateway } = configuration;
    this.#stack?.configure(configuration);
    const text = `${formatIpv4Address(address)}/${prefixLength} ${how}`;
    this.#observer.handleStage('address', 'done', text);
    this.#observer.handleFacts([
      { group: 'network', name: 'Address', value: text },
      {
        group: 'network',
        name: 'Gateway',
        value: gateway === undefined ? 'none' : formatIpv4Address(gateway),
      },
      {
        group: 'network',
        name: 'MAC address',
        value: formatMacAddress(this.#netif?.macAddress ?? zeroMacAddress),
      },
    ]);
    this.#giveToHost(configuration);
    this.#setTarget(configuration, nowUs);
  }

  /** With a TAP interface the host has the same address, so that its programs use the device too. */
  #giveToHost(configuration: Ipv4Configuration): void {
    const { tap } = this.#options;
    if (tap === undefined) return;
    tap.setAddress(configuration, (problem) => this.#reportTap(problem));
    this.#observer.handleFacts([{ group: 'network', name: 'TAP', value: describeTap(tap, configuration) }]);
  }

  #reportTap(problem: Problem | undefined): void {
    if (problem === undefined) this.#observer.handleCured('tap-not-configured');
    else this.#observer.handleProblem(problem);
  }

  #setTarget(configuration: Ipv4Configuration, nowUs: number): void {
    const { address: target, reason } = chooseTarget(this.#settings.target, configuration);
    if (target === undefined) {
      this.#observer.handleStage('target', 'failed', reason);
      this.#observer.handleProblem({
        id: 'no-target',
        severity: 'error',
        message: `Nothing is measured: ${reason}.`,
        remedy: 'Name a host behind the device that answers pings (--target ADDRESS).',
      });
      return;
    }
    this.#target = target;
    this.#answered = false;
    this.#lostInARow = 0;
    this.#observer.handleCured('no-target');
    this.#observer.handleStage('target', 'active', `${formatIpv4Address(target)} is being asked`);
    this.#observer.handleFacts([{ group: 'network', name: 'Target', value: formatIpv4Address(target) }]);
    this.#setPingTargets(target, nowUs);
    this.#load?.setTarget(target, nowUs);
    this.#download?.setTarget(target, nowUs);
    this.#observer.handleStage('measure', 'active', this.#settings.ping.enabled ? 'measuring' : 'load only');
  }

  // ---- DHCP ----

  handleLease(lease: DhcpLease, nowUs: number): void {
    this.#observer.handleCured('no-dhcp-server');
    this.#handleAddress(lease, `by DHCP from ${formatIpv4Address(lease.server)}`, nowUs);
  }

  handleLeaseLost(nowUs: number): void {
    this.#observer.handleEvent('stage', 'the DHCP lease was lost', nowUs);
    this.#observer.handleStage('address', 'active', 'asking for an address by DHCP');
    this.#setPingTargets(undefined, nowUs);
    this.#load?.setTarget(undefined, nowUs);
    this.#download?.setTarget(undefined, nowUs);
  }

  handleNoServer(_nowUs: number): void {
    this.#observer.handleProblem({
      id: 'no-dhcp-server',
      severity: 'error',
      message: 'No DHCP server answers behind the device.',
      remedy:
        'If the device has no DHCP server, set an address by hand (--address 10.9.0.2/24 --target 10.9.0.1).' +
        ' A modem answers only once it has a data connection.',
    });
  }

  // ---- interface ----

  handleReceive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void {
    const ours = this.#stack?.handleFrame(bytes, offset, length, nowUs) ?? true;
    if (!ours) this.#options.tap?.bridge?.deliver(bytes, offset, length);
  }

  handleCarrier(on: boolean, nowUs: number): void {
    if (this.#stopping) return;
    this.#options.tap?.setCarrier(on);
    this.#observer.handleEvent('carrier', on ? 'carrier on' : 'carrier off', nowUs);
    if (on) {
      if (this.#stack !== undefined) this.#handleLinkUp(nowUs);
      return;
    }
    this.#observer.handleStage('carrier', 'active', 'waiting for the link');
    // Without a link nobody can answer; who did not before may do so with the next one.
    this.#lostInARow = 0;
    this.#setPingTargets(undefined, nowUs);
    this.#load?.setTarget(undefined, nowUs);
    this.#download?.setTarget(undefined, nowUs);
    this.#carrierDueAtUs = nowUs + carrierPatienceUs;
  }

  handlePacketDequeued(tag: number, waitUs: number): void {
    this.#sampler?.addQdiscWait(waitUs);
    if (tag === 0) return;
    this.#ping?.handlePacketDequeued(tag, waitUs);
    for (const ping of this.#morePings) ping.handlePacketDequeued(tag, waitUs);
  }

  // A probe that the qdisc has dropped is lost when its time is over, like any other.
  handlePacketDropped(tag: number): void {
    this.#load?.handlePacketDropped(tag);
  }

  handlePacketSent(tag: number, handedOverAtUs: number, completedAtUs: number, ok: boolean): void {
    this.#load?.handlePacketSent(tag);
    if (!ok) return;
    this.#sampler?.addDriverQueue(completedAtUs - handedOverAtUs);
    if (tag === 0) return;
    this.#ping?.handlePacketSent(tag, handedOverAtUs, completedAtUs);
    for (const ping of this.#morePings) ping.handlePacketSent(tag, handedOverAtUs, completedAtUs);
  }

  #handleProbe(result: ProbeResult): void {
    this.#observer.handleProbe(this.#fillProbeRow(result));
    if (Number.isNaN(result.rttUs)) this.#handleLost();
    else this.#handleAnswer();
  }

  #handleMoreProbe(index: number, result: ProbeResult): void {
    this.#observer.handleMoreProbe?.(index, this.#fillProbeRow(result));
  }

  /** Pings go to targets of their own, or to the session's; undefined stops them. */
  #setPingTargets(target: number | undefined, nowUs: number): void {
    const targetOf = (own: string | undefined): number | undefined => {
      if (target === undefined || own === undefined) return target;
      return parseIpv4Address(own);
    };
    const { ping, morePings = [] } = this.#settings;
    this.#ping?.setTarget(targetOf(ping.target), nowUs);
    this.#morePings.forEach((more, index) => more.setTarget(targetOf(morePings[index]?.target), nowUs));
  }

  /** Tells of probes that could not be sent: a pause of ours leaves a gap, not a row of good round trips. */
  #watchOmitted(nowUs: number): void {
    const omitted = this.#ping?.omitted ?? 0;
    if (omitted === this.#omittedProbes) return;
    const count = omitted - this.#omittedProbes;
    this.#omittedProbes = omitted;
    this.#observer.handleEvent('gap', `${formatCount(count)} pings were due in a pause and not sent`, nowUs);
  }

  #fillProbeRow(result: ProbeResult): Float64Array {
    const row = this.#probeRow;
    row[probeIndex.timeUs] = result.dueAtUs - this.#options.startUs;
    row[probeIndex.sequence] = result.sequence;
    row[probeIndex.rttUs] = result.rttUs;
    row[probeIndex.qdiscWaitUs] = result.qdiscWaitUs;
    row[probeIndex.driverQueueUs] = result.driverQueueUs;
    row[probeIndex.lateUs] = result.lateUs;
    return row;
  }

  #handleAnswer(): void {
    this.#lostInARow = 0;
    this.#observer.handleCured('target-silent');
    if (this.#answered) return;
    this.#answered = true;
    const target = this.#target === undefined ? '' : formatIpv4Address(this.#target);
    this.#observer.handleStage('target', 'done', `${target} answers`);
  }

  #handleLost(): void {
    if (++this.#lostInARow < silentProbes || this.#target === undefined) return;
    this.#observer.handleProblem({
      id: 'target-silent',
      severity: 'warning',
      message: `${formatIpv4Address(this.#target)} does not answer pings.`,
      remedy: 'Choose a host that does (--target ADDRESS); the load goes on meanwhile.',
    });
  }

  /** Tells of frames that were lost between the host and us, as soon as there are any. */
  #watchTap(nowUs: number): void {
    const { tap } = this.#options;
    if (tap === undefined || nowUs < this.#tapDueAtUs) return;
    this.#tapDueAtUs = nowUs + tapIntervalUs;
    const dropped = tap.droppedFrames;
    if (dropped === this.#tapDropped) return;
    this.#tapDropped = dropped;
    this.#observer.handleFacts([
      { group: 'network', name: 'TAP drops', value: `${formatCount(dropped)} frames` },
    ]);
  }

  // ---- settings ----

  /** Changes settings while measuring. */
  configure(changes: LiveSettings, nowUs: number): void {
    const before = this.#settings;
    const after = changedSettings(before, changes);
    const { bql, qdisc, load, download, ping } = after;
    this.#settings = after;
    if (changes.bql !== undefined) {
      this.#netif?.txQueue.configure(txQueueSettings(bql), nowUs);
      if (bql.enabled !== before.bql.enabled) {
        this.#observer.handleEvent(
          bql.enabled ? 'bql-on' : 'bql-off',
          `BQL ${bql.enabled ? 'on' : 'off'}`,
          nowUs,
        );
      }
    }
    if (changes.qdisc !== undefined) this.#changeQdisc(before.qdisc, qdisc, nowUs);
    if (changes.load !== undefined) this.#load?.configure(load, nowUs);
    if (changes.download !== undefined && download !== undefined) {
      this.#download?.configure(download, nowUs);
    }
    if (changes.ping !== undefined) {
      this.#ping?.configure(pingTiming(ping), nowUs);
      const more = after.morePings ?? [];
      this.#morePings.forEach((morePing, index) => {
        const own = more[index];
        if (own !== undefined) {
          morePing.configure(pingTiming({ ...own, enabled: ping.enabled }), nowUs);
        }
      });
    }
  }

  /** Another qdisc, or the same with other options; nothing where all is as it was. */
  #changeQdisc(before: QdiscSettings, qdisc: QdiscSettings, nowUs: number): void {
    const keys = Object.keys(qdisc) as (keyof QdiscSettings)[];
    const differs = keys.some((key) => qdisc[key] !== before[key]);
    // Only fq_codel has options.
    if (!differs || (qdisc.kind === before.kind && qdisc.kind !== 'fq_codel')) return;
    const netif = this.#netif;
    if (netif === undefined) return;
    const dropped = netif.replaceQdisc(qdiscOf(qdisc, this.#options.seed), nowUs);
    const words =
      dropped === 0
        ? ''
        : `, ${formatCount(dropped)} waiting ${dropped === 1 ? 'packet' : 'packets'} dropped`;
    this.#observer.handleEvent('settings', `qdisc ${qdisc.kind}${words}`, nowUs);
    this.#observer.handleFacts([{ group: 'queue', name: 'Qdisc', value: describeQdisc(qdisc) }]);
  }

  // ---- end ----

  get #stopping(): boolean {
    return this.#whenStopped !== undefined;
  }

  /**
   * Ends the measurement and takes the interface down. `done` is called once nothing is in flight any more, or with an
   * error if that could not be reached.
   */
  stop(nowUs: number, done: (error: AppError | undefined, nowUs: number) => void): void {
    if (this.#stopping) return;
    this.#whenStopped = done;
    this.#ping?.close();
    for (const ping of this.#morePings) ping.close();
    this.#load?.setTarget(undefined, nowUs);
    this.#download?.setTarget(undefined, nowUs);
    this.#sampler?.stop();
    this.#carrierDueAtUs = neverUs;
    const hasLease = this.#dhcp?.lease !== undefined;
    this.#dhcp?.stop(nowUs);
    this.#stopAtUs = hasLease && !this.#gone ? nowUs + farewellUs : nowUs;
  }

  /**
   * Resets the device's port, once the interface is down. Nothing but giving it back can be done with it afterwards: it
   * has forgotten what the driver has set.
   */
  resetPort(nowUs: number, done: (error: AppError | undefined, nowUs: number) => void): void {
    this.#runner.start(resetPort(), nowUs, (outcome, atUs) => {
      done(outcome.ok ? undefined : asFailure(outcome.error), atUs);
    });
  }

  #takeDown(nowUs: number): void {
    const done = this.#whenStopped;
    if (this.#netif === undefined || done === undefined) {
      done?.(undefined, nowUs);
      return;
    }
    const { usbnet } = this.#netif;
    this.#netif.stop(nowUs, (outcome, atUs) => {
      if (!outcome.ok) done(asFailure(outcome.error), atUs);
      // A chip that does not go to rest is given back all the same.
      else usbnet.unbind(atUs, (_unbound, laterUs) => done(undefined, laterUs));
    });
  }

  #fail(stage: StageName, error: unknown): void {
    if (this.#failed || this.#gone || this.#stopping) return;
    this.#failed = true;
    const failure = asFailure(error);
    this.#observer.handleStage(stage, 'failed', failure.message);
    this.#observer.handleFailure(failure);
  }

  // ---- transport ----

  handleTransferDone(transfer: Transfer, nowUs: number): void {
    this.#netif?.usbnet.handleTransferDone(transfer, nowUs);
    this.#options.wake();
  }

  handleRequestDone(result: RequestResult, nowUs: number): void {
    this.#runner.handleRequestDone(result, nowUs);
    this.#options.wake();
  }

  handleGone(nowUs: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#observer.handleEvent('unplug', 'the device is gone', nowUs);
    if (this.#netif === undefined) this.#runner.handleGone(nowUs);
    else this.#netif.usbnet.handleGone(nowUs);
    this.#observer.handleGone();
    this.#options.wake();
  }

  // ---- time ----

  poll(nowUs: number): void {
    this.#runner.poll(nowUs);
    if (nowUs >= this.#stopAtUs) {
      this.#stopAtUs = neverUs;
      this.#takeDown(nowUs);
    }
    if (nowUs >= this.#carrierDueAtUs) this.#reportNoCarrier();
    this.#dhcp?.poll(nowUs);
    this.#stack?.poll(nowUs);
    this.#ping?.poll(nowUs);
    for (const ping of this.#morePings) ping.poll(nowUs);
    this.#watchOmitted(nowUs);
    this.#load?.poll(nowUs);
    this.#download?.poll(nowUs);
    this.#options.tap?.bridge?.poll(nowUs);
    this.#netif?.poll(nowUs);
    this.#sampler?.poll(nowUs);
  }

  pollAtUs(): number {
    let next = Math.min(this.#runner.pollAtUs(), this.#stopAtUs, this.#carrierDueAtUs);
    if (this.#netif !== undefined) next = Math.min(next, this.#netif.pollAtUs());
    if (this.#load !== undefined) next = Math.min(next, this.#load.pollAtUs());
    if (this.#download !== undefined) next = Math.min(next, this.#download.pollAtUs());
    const { tap } = this.#options;
    if (tap?.bridge !== undefined) next = Math.min(next, tap.bridge.pollAtUs());
    if (this.#ping !== undefined) next = Math.min(next, this.#ping.pollAtUs());
    for (const ping of this.#morePings) next = Math.min(next, ping.pollAtUs());
    if (this.#sampler !== undefined) next = Math.min(next, this.#sampler.pollAtUs());
    if (this.#stack !== undefined) next = Math.min(next, this.#stack.pollAtUs());
    if (this.#dhcp !== undefined) next = Math.min(next, this.#dhcp.pollAtUs());
    return next;
  }

  #reportNoCarrier(): void {
    this.#carrierDueAtUs = neverUs;
    this.#observer.handleProblem({
      id: 'no-carrier',
      severity: 'warning',
      message: 'The device reports no link.',
      remedy: 'An Ethernet adapter needs its cable; a modem needs a SIM, a signal and a data connection.',
    });
  }
}

/** An error of the driver or of our own as one that can be shown. */
function asFailure(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof DriverError) {
    const kind =
      error.status === 'gone' ? 'device-gone' : error.status === 'timed-out' ? 'timed-out' : 'device-failed';
    return new AppError(kind, error.message, { details: { stage: error.stage }, cause: error });
  }
  if (error instanceof InvariantError || error instanceof DqlAccountingError) {
    return new AppError('internal', error.message, { cause: error });
  }
  return new AppError('internal', error instanceof Error ? error.message : String(error), { cause: error });
}
