/** Simulated devices on a link of 10 Mbit/s, the case that BQL in usbnet was made for, and the server that offers them. */
import { silentLog } from '../../src/base/log.ts';
import { invariant } from '../../src/base/errors.ts';
import { monotonicClock } from '../../src/engine/monotonic-clock.ts';
import type { UsbipEvent } from '../../src/hosts/usbip/usbip-connection.ts';
import { startUsbipHost } from '../../src/hosts/usbip/usbip-host.ts';
import { findPersonality } from '../../src/sim/catalogue.ts';
import type { SimPersonality } from '../../src/sim/personality.ts';
import { SimUsbipExports } from '../../src/sim/usbip-exports.ts';

/** A 10 Mbit/s modem at SuperSpeed: CDC ECM, and the same one with CDC NCM. */
export function slowDevices(fifoBytes: number): readonly SimPersonality[] {
  const modem = findPersonality('modem-10mbit');
  invariant(modem !== undefined, 'the catalogue has the slow modem');
  const ecm: SimPersonality = { ...modem, name: 'ecm', fifoBytes };
  const ncm: SimPersonality = {
    ...ecm,
    name: 'ncm',
    firmware: 'cdc-ncm',
    productId: 0x0005,
    product: `${modem.product} with NCM`,
  };
  return [ecm, ncm];
}

/** Serves the devices while `use` runs; they are there as 1-1, 1-2, … Answers with what became of each connection too. */
export async function serving<Result>(
  devices: readonly SimPersonality[],
  use: (port: number) => Promise<Result>,
): Promise<{ readonly result: Result; readonly events: readonly UsbipEvent[] }> {
  const events: UsbipEvent[] = [];
  const host = await startUsbipHost({
    exports: new SimUsbipExports(devices, 1),
    host: '127.0.0.1',
    port: 0,
    clock: monotonicClock,
    log: silentLog,
    onEvent: (event) => events.push(event),
  });
  try {
    return { result: await use(host.port), events };
  } finally {
    await host.close();
  }
}
