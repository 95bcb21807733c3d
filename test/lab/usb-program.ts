/**
 * What the laboratory's guest runs to compare two ways to the same device, `QUEUESCOPE_USB=libusb` and usbfs: everything that a
 * `Transport` can be asked for, in states that are hard on it. Prints one JSON document.
 *
 * Arguments: the device, and a file that is made once the device may be unplugged.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicClock } from '../../src/engine/monotonic-clock.ts';
import { directUsb } from '../../src/hosts/direct-usb.ts';
import { LibusbBus } from '../../src/transports/libusb-bus.ts';
import type { CloseReport, UsbLease } from '../../src/transports/usb-bus.ts';
import type { Transfer } from '../../src/usbnet/transfer.ts';
import type { DeviceRequest, RequestResult, TransportHandler } from '../../src/usbnet/transport.ts';

const log = { log: () => {} };
const endLimitMs = 5000;
const stepMs = 10;
const transferBytes = 16_384;
const usbfsMemory = '/sys/module/usbcore/parameters/usbfs_memory_mb';

class Driver implements TransportHandler {
  readonly lease: UsbLease;
  statuses: string[] = [];
  isGone = false;
  #answered: (result: RequestResult) => void = () => {};
  out = 0;

  constructor(lease: UsbLease) {
    this.lease = lease;
    lease.transport.setHandler(this);
  }

  handleTransferDone(transfer: Transfer): void {
    this.out--;
    this.statuses.push(transfer.status);
  }
  handleRequestDone(result: RequestResult): void {
    this.#answered(result);
  }
  handleGone(): void {
    this.isGone = true;
  }

  async ask(request: DeviceRequest): Promise<string> {
    const result = await new Promise<RequestResult>((resolve) => {
      this.#answered = resolve;
      this.lease.transport.request(request, monotonicClock.nowUs());
    });
    return `${result.status} ${result.data.length}`;
  }

  readNtbParameters(): Promise<string> {
    return this.ask({
      kind: 'control-in',
      requestType: 0xa1,
      request: 0x80,
      value: 0,
      index: 0,
      length: 28,
      timeoutMs: 2000,
    });
  }

  get bulkIn(): number {
    const { interfaces } = this.lease.transport.device.configuration;
    const endpoints = interfaces.flatMap(({ altSettings }) => altSettings.flatMap((each) => each.endpoints));
    const found = endpoints.find(({ type, address }) => type === 'bulk' && address >= 0x80);
    if (found === undefined) throw new Error('no bulk endpoint');
    return found.address;
  }

  /** Asks for so many; answers with how that went, and with those that are out. */
  submit(count: number, bytes = transferBytes): { results: Record<string, number>; transfers: Transfer[] } {
    const transfers: Transfer[] = [];
    const results: Record<string, number> = {};
    for (let i = 0; i < count; i++) {
      const transfer = this.lease.transport.makeTransfer(this.bulkIn, bytes, 0);
      transfer.length = bytes;
      const result = this.lease.transport.submit(transfer, 0);
      results[result] = (results[result] ?? 0) + 1;
      if (result !== 'ok') continue;
      this.out++;
      transfers.push(transfer);
    }
    return { results, transfers };
  }

  /** How those that were out have ended, once all have. */
  async ends(): Promise<Record<string, number>> {
    for (let waited = 0; this.out > 0 && waited < endLimitMs; waited += stepMs) await sleep(stepMs);
    const counts: Record<string, number> = {};
    for (const status of this.statuses) counts[status] = (counts[status] ?? 0) + 1;
    if (this.out > 0) counts['missing'] = this.out;
    this.statuses = [];
    return counts;
  }
}

function outcomeOf({ reattached, notReturned, transfersLost }: CloseReport): unknown {
  return { drivers: reattached.map(({ driver }) => driver), notReturned: notReturned.length, transfersLost };
}

const [id = '', unplugFile = ''] = process.argv.slice(2);
const usbfs = directUsb(process.env, log);
const bus = new LibusbBus({ clock: monotonicClock, log, platform: 'linux', usbfs });
const open = async (): Promise<Driver> => new Driver(await bus.open(id, { interfaces: [0, 1] }));
const select = { kind: 'set-interface', interfaceNumber: 1, alternateSetting: 1, timeoutMs: 2000 } as const;
const steps: Record<string, unknown> = {};

let driver = await open();
steps['control'] = await driver.readNtbParameters();
steps['refused control'] = await driver.ask({
  kind: 'control-in',
  requestType: 0xc0,
  request: 0x7f,
  value: 0,
  index: 0,
  length: 4,
  timeoutMs: 2000,
});
steps['no such altsetting'] = await driver.ask({ ...select, alternateSetting: 7 });
steps['altsetting'] = await driver.ask(select);
steps['clear halt'] = await driver.ask({
  kind: 'clear-halt',
  endpointAddress: driver.bulkIn,
  timeoutMs: 2000,
});

const many = driver.submit(100);
steps['submit'] = many.results;
for (const transfer of many.transfers) driver.lease.transport.cancel(transfer, 0);
steps['cancelled'] = await driver.ends();

driver.submit(8);
steps['altsetting under transfers'] = [await driver.ask(select), await driver.ends()];
driver.submit(8);
steps['reset under transfers'] = [await driver.ask({ kind: 'reset', timeoutMs: 5000 }), await driver.ends()];
steps['after the reset'] = [
  driver.isGone,
  await driver.readNtbParameters(),
  await driver.ask(select),
  driver.submit(4).results,
];

writeFileSync(usbfsMemory, '1');
const { results } = driver.submit(100);
writeFileSync(usbfsMemory, '16');
steps['out of memory'] = { refused: (results['no-memory'] ?? 0) > 20, others: results['failed'] ?? 0 };
steps['close'] = [outcomeOf(await driver.lease.close()), await driver.ends()];
let second = 'nothing happened';
try {
  driver = await open();
  await bus.open(id, { interfaces: [0] });
} catch (error) {
  second = String(error);
}
steps['opened twice'] = second;

await driver.ask(select);
driver.submit(8);
writeFileSync(unplugFile, '');
for (let waited = 0; !driver.isGone && waited < endLimitMs; waited += stepMs) await sleep(stepMs);
// How is for the host controller to say, and for who is quicker: errors of the bus come before the unplug itself.
const unplugEnds = await driver.ends();
steps['unplugged'] = {
  gone: driver.isGone,
  missing: unplugEnds['missing'] ?? 0,
  ended: Object.values(unplugEnds).reduce((sum, count) => sum + count, 0),
  request: await driver.readNtbParameters(),
  submit: driver.submit(1).results,
  close: outcomeOf(await driver.lease.close()),
};
const way = usbfs === undefined ? 'libusb' : 'usbfs';
process.stdout.write(`${JSON.stringify({ way, steps, unplugEnds })}\n`);
