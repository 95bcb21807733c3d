import type { Log } from '../base/log.ts';
import { Deadline, type InterfaceClaims } from './interface-claims.ts';
import type { LibusbHandle } from './libusb-module.ts';
import type { LibusbTransport } from './libusb-transport.ts';
import { closeLimitMs, type CloseReport, type NotReturned, type UsbLease } from './usb-bus.ts';

/** How long cancelled transfers may take to come back; and again after their interfaces were released. */
const drainLimitMs = 2000;
const drainAfterReleaseMs = 500;
/** What calls that block may take, all in all. */
const blockingMs = 1000;
/** What is left for giving back. */
const giveBackLimitMs = closeLimitMs - drainLimitMs - drainAfterReleaseMs - blockingMs;

export interface LibusbLeaseOptions {
  readonly id: string;
  readonly handle: LibusbHandle;
  readonly transport: LibusbTransport;
  readonly claims: InterfaceClaims;
  readonly log: Log;
  /** The device has been given back; called once. */
  readonly onClosed: () => void;
}

/** A device that is open through libusb. */
export class LibusbLease implements UsbLease {
  readonly id: string;
  readonly transport: LibusbTransport;
  readonly handle: LibusbHandle;
  readonly #claims: InterfaceClaims;
  readonly #log: Log;
  readonly #onClosed: () => void;
  #closed: Promise<CloseReport> | undefined;

  constructor(options: LibusbLeaseOptions) {
    this.id = options.id;
    this.handle = options.handle;
    this.transport = options.transport;
    this.#claims = options.claims;
    this.#log = options.log;
    this.#onClosed = options.onClosed;
  }

  close(): Promise<CloseReport> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<CloseReport> {
    const { transport } = this;
    transport.startClosing();
    let idle = await transport.waitUntilIdle(drainLimitMs);

    const deadline = new Deadline(giveBackLimitMs);
    const notReturned: NotReturned[] = [];
    if (!transport.gone) {
      notReturned.push(...(await this.#claims.resetAltSettings(changed(transport.altSettings), deadline)));
    }
    notReturned.push(...(await this.#claims.release(deadline)));
    if (!idle) idle = await transport.waitUntilIdle(drainAfterReleaseMs);
    const restored = await this.#claims.restore(deadline);
    notReturned.push(...restored.notReturned);
    deadline.clear();

    const transfersLost = transport.dispose();
    try {
      this.handle.__close();
    } catch (error) {
      notReturned.push({
        message: `The device stays open in this program (${String(error)}).`,
        remedy: 'It is free once this program has ended.',
      });
    }
    this.#onClosed();
    const report: CloseReport = { reattached: restored.reattached, notReturned, transfersLost };
    this.#logReport(report);
    return report;
  }

  #logReport(report: CloseReport): void {
    for (const { message } of report.notReturned) this.#log.log('warn', message, { id: this.id });
    if (report.transfersLost > 0) {
      this.#log.log('warn', 'the bus never told the end of transfers', {
        id: this.id,
        transfers: report.transfersLost,
      });
    }
    for (const { interfaceNumber, driver } of report.reattached) {
      this.#log.log('info', 'gave the interface back to its kernel driver', {
        id: this.id,
        interfaceNumber,
        driver,
      });
    }
  }
}

function changed(altSettings: ReadonlyMap<number, number>): number[] {
  return Array.from(altSettings.entries())
    .filter(([, alternateSetting]) => alternateSetting !== 0)
    .map(([interfaceNumber]) => interfaceNumber);
}
