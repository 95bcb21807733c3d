import type { AppError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import type { VirtualClock } from '../../src/base/virtual-clock.ts';
import type { Problem } from '../../src/contract/problem.ts';
import { defaultSessionSettings, type SessionSettings } from '../../src/contract/settings.ts';
import { probeIndex } from '../../src/contract/telemetry.ts';
import { DataPath } from '../../src/engine/data-path.ts';
import { endOfBurst } from '../../src/engine/drive.ts';
import { noLag } from '../../src/engine/event-loop-lag.ts';
import type { MeasurementObserver, ReopenStep } from '../../src/engine/measurement-path.ts';
import { matchOf } from '../../src/engine/sim-source.ts';
import { findDataEndpoints } from '../../src/usbnet/endpoints.ts';
import type { RecoveryLadder } from '../../src/usbnet/recovery-ladder.ts';
import { createSimDevice, type RunningSimDevice } from '../../src/sim/create-sim-device.ts';
import type { SimPersonality } from '../../src/sim/personality.ts';
import { FaultTransport } from '../../src/transports/fault-transport.ts';
import { TransferLedger } from './transfer-ledger.ts';

const stepUs = 2000;

/** Full load and twenty pings a second, so that there is always something in flight and something due. */
const settings: SessionSettings = {
  ...defaultSessionSettings,
  load: { ...defaultSessionSettings.load, enabled: true },
  ping: { ...defaultSessionSettings.ping, intervalMs: 50, timeoutMs: 1000 },
  sampleRateHz: 10,
};

/**
 * Links of a speed at which a queue stands in front of the device, whatever it is, and at which a simulated second takes
 * a few thousandths of one.
 */
export function slowed(personality: SimPersonality): SimPersonality {
  const { link } = personality;
  return {
    ...personality,
    link: {
      ...link,
      upBitsPerSecond: Math.min(link.upBitsPerSecond, 10e6),
      downBitsPerSecond: Math.min(link.downBitsPerSecond, 50e6),
      delayUs: Math.min(link.delayUs, 2000),
    },
  };
}

/** A virtual device from plugging in to giving back, driven under load in virtual time, with faults from outside. */
export class DrivenDevice implements MeasurementObserver {
  readonly sim: RunningSimDevice;
  readonly faults: FaultTransport;
  readonly ledger: TransferLedger;
  readonly path: DataPath;
  readonly problems = new Map<string, Problem>();
  readonly reopens: ReopenStep[] = [];
  failure: AppError | undefined;
  gone = false;
  /** When the newest ping that was answered was due. */
  answeredAtUs = Number.NEGATIVE_INFINITY;
  readonly #clock: VirtualClock;

  /**
   * @param loadBitsPerSecond 0: as much as it takes
   * @param ladder what recovers it; undefined: nothing but usbnet itself
   */
  constructor(
    personality: SimPersonality,
    clock: VirtualClock,
    seed: number,
    loadBitsPerSecond = 0,
    ladder?: RecoveryLadder,
  ) {
    this.#clock = clock;
    this.sim = createSimDevice(personality, { seed, nowUs: clock.nowUs() });
    this.faults = new FaultTransport(this.sim.transport, [], seed);
    this.ledger = new TransferLedger(this.faults);
    this.path = new DataPath({
      transport: this.ledger,
      match: matchOf(this.sim.transport.device),
      tuning: endOfBurst,
      settings: { ...settings, load: { ...settings.load, rateBitsPerSecond: loadBitsPerSecond } },
      seed,
      lag: noLag,
      log: silentLog,
      observer: this,
      startUs: 0,
      wake: () => {},
      ...(ladder === undefined ? {} : { recovery: ladder }),
    });
    for (const part of this.#parts) clock.add(part);
    this.path.start(clock.nowUs());
  }

  /** IN and OUT. */
  get bulkEndpoints(): readonly [number, number] {
    const { dataInterface } = matchOf(this.sim.transport.device);
    const data = findDataEndpoints(this.sim.transport.device.configuration, dataInterface);
    if (data === undefined) throw new Error('there are no bulk endpoints');
    return [data.bulkIn.address, data.bulkOut.address];
  }

  get #parts() {
    return [...this.sim.polled, this.faults, this.path];
  }

  /** Lets time pass until something is so. @returns false if it is not within the limit */
  until(condition: () => boolean, limitUs: number): boolean {
    const endUs = this.#clock.nowUs() + limitUs;
    while (!condition()) {
      if (this.#clock.nowUs() >= endUs) return false;
      this.#clock.runUntil(this.#clock.nowUs() + stepUs);
    }
    return true;
  }

  /** Bytes go both ways again: a ping that is sent from now on is answered, and transfers of the load complete. */
  works(limitUs: number): boolean {
    const sinceUs = this.#clock.nowUs();
    const { netif } = this.path;
    const before = netif?.usbnet.stats.txTransfers ?? 0;
    return this.until(
      () =>
        this.answeredAtUs >= sinceUs &&
        (this.path.netif?.usbnet.stats.txTransfers ?? 0) > before &&
        !this.gone,
      limitUs,
    );
  }

  /** Takes the interface down and the device out of time. @throws Error naming what is left over */
  giveBack(): void {
    let stopped = false;
    let stopError: AppError | undefined;
    this.path.stop(this.#clock.nowUs(), (error) => {
      stopped = true;
      stopError = error;
    });
    if (!this.until(() => stopped, 10_000_000)) throw new Error('the interface was not taken down');
    if (stopError !== undefined) throw stopError;
    const { netif } = this.path;
    const left = {
      'transfers out': this.ledger.out,
      'ends that are missing': this.ledger.submitted - this.ledger.ended,
      'flights of the bus': this.faults.outstanding,
      'ends that were told twice': this.faults.counters.strayEnds,
      'bytes that BQL has in flight': netif?.txQueue.inflightBytes ?? 0,
      'packets that were not given back': netif?.packets.inUse ?? 0,
      'transfers beyond those that can be in use':
        netif === undefined ? 0 : Math.max(0, netif.usbnet.transfersMade - mostTransfers(netif.usbnet)),
    };
    for (const [what, count] of Object.entries(left)) {
      if (count !== 0) throw new Error(`left over: ${count} ${what}`);
    }
    for (const part of this.#parts) this.#clock.remove(part);
  }

  handleStage(): void {}
  handleFacts(): void {}
  handleSettings(): void {}
  handleSample(): void {}
  handleProbe(row: Float64Array): void {
    const dueAtUs = row[probeIndex.timeUs] ?? Number.NaN;
    if (!Number.isNaN(row[probeIndex.rttUs])) this.answeredAtUs = Math.max(this.answeredAtUs, dueAtUs);
  }
  handleEvent(): void {}
  handleProblem(problem: Problem): void {
    this.problems.set(problem.id, problem);
  }
  handleCured(problemId: string): void {
    this.problems.delete(problemId);
  }
  handleStalled(): void {}
  handleReopen(step: ReopenStep): void {
    this.reopens.push(step);
  }
  handleFailure(error: AppError): void {
    this.failure ??= error;
  }
  handleGone(): void {
    this.gone = true;
  }
}

/** As many as fill both queues, one in the hands of the driver and one to spare; receiving takes one more while one is read. */
function mostTransfers({ txQlen, rxQlen }: { readonly txQlen: number; readonly rxQlen: number }): number {
  return txQlen + 2 + 2 * rxQlen + 2;
}
