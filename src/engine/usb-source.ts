import type { Clock } from '../base/clock.ts';
import type { Event } from '../base/emitter.ts';
import { AppError } from '../base/errors.ts';
import type { Device } from '../contract/device.ts';
import type { Problem } from '../contract/problem.ts';
import { adviseOn } from '../minidrivers/advice.ts';
import { formatUsbId } from '../minidrivers/described-device.ts';
import { explainNoMatch, matchDevice, recognize, type Recognition } from '../minidrivers/registry.ts';
import type { UsbBus, UsbBusDevice } from '../transports/usb-bus.ts';
import type { Match } from '../usbnet/minidriver.ts';
import { usbClasses } from '../wire/cdc-class.ts';
import type { Log } from '../base/log.ts';
import { chooseMatch } from './choose-match.ts';
import type { DeviceSource, ListedDevice } from './device-source.ts';
import { driveLease } from './drive-lease.ts';
import { linkProblems } from './link-problems.ts';
import type { LinuxFiles } from './linux-files.ts';
import type { OpenedDevice } from './opened-device.ts';

/** Interface classes of devices that may be about networks; others (keyboards, disks) are not listed. */
const networkClasses: ReadonlySet<number> = new Set([
  usbClasses.communications,
  usbClasses.data,
  usbClasses.wirelessController,
]);

/** Devices on this machine's USB bus. */
export class UsbSource implements DeviceSource {
  readonly #bus: UsbBus;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #linux: LinuxFiles | undefined;

  /** @param linux what waits for the nodes of devices, where the bus opens them through usbfs */
  constructor(bus: UsbBus, clock: Clock, log: Log, linux?: LinuxFiles) {
    this.#bus = bus;
    this.#clock = clock;
    this.#log = log;
    this.#linux = linux;
  }

  get onChange(): Event<void> {
    return this.#bus.onChange;
  }

  async list(): Promise<readonly ListedDevice[]> {
    const listed: ListedDevice[] = [];
    for (const usbDevice of await this.#bus.list()) {
      const recognitions = recognize(usbDevice, usbDevice.activeConfiguration);
      if (recognitions.length === 0 && !looksLikeNetwork(usbDevice)) continue;
      const [match] = matchDevice(usbDevice, usbDevice.activeConfiguration);
      listed.push({
        device: describe(usbDevice, match, recognitions),
        open:
          match === undefined
            ? undefined
            : (fail, choice) => this.#open(usbDevice.id, chooseMatch(usbDevice, choice), fail),
        identity: identityOf(usbDevice),
      });
    }
    return listed;
  }

  async #open(id: string, match: Match, fail: (error: unknown) => void): Promise<OpenedDevice> {
    const driven = await driveLease({
      match,
      clock: this.#clock,
      log: this.#log,
      fail,
      linux: this.#linux,
      open: (request) => this.#bus.open(id, request),
    });
    return {
      ...driven,
      text: `claimed interfaces ${match.controlInterface} and ${match.dataInterface}`,
    };
  }

  async close(): Promise<void> {
    await this.#bus.closeAll();
  }
}

export function looksLikeNetwork(usbDevice: UsbBusDevice): boolean {
  return usbDevice.configurations.some((configuration) =>
    configuration.interfaces.some((usbInterface) =>
      usbInterface.altSettings.some((altSetting) => networkClasses.has(altSetting.interfaceClass)),
    ),
  );
}

/** Two devices of one kind differ by their serial numbers, if they have any. */
function identityOf({ vendorId, productId, serialNumber }: UsbBusDevice): string {
  return `${formatUsbId(vendorId, productId)} ${serialNumber ?? ''}`;
}

function describe(
  usbDevice: UsbBusDevice,
  match: Match | undefined,
  recognitions: readonly Recognition[],
): Device {
  const inaccessible = usbDevice.problems.some((problem) => problem.severity === 'error');
  const id = formatUsbId(usbDevice.vendorId, usbDevice.productId);
  return {
    id: usbDevice.id,
    mode: 'drive',
    vendorId: usbDevice.vendorId,
    productId: usbDevice.productId,
    name: usbDevice.product ?? `USB device ${id}`,
    ...(usbDevice.manufacturer === undefined ? {} : { manufacturer: usbDevice.manufacturer }),
    speed: usbDevice.speed,
    ...(match === undefined
      ? { reason: explainNoMatch(usbDevice, usbDevice.activeConfiguration) }
      : { function: match.networkFunction, minidriver: match.driver, reason: match.reason }),
    state: match === undefined ? 'unsupported' : inaccessible ? 'inaccessible' : 'available',
    problems: [
      ...usbDevice.problems.map(({ id: problemId, severity, message, remedy }) => ({
        id: problemId,
        severity,
        message,
        ...(remedy === undefined ? {} : { remedy }),
      })),
      ...linkProblems(usbDevice),
      ...recognitionProblems(usbDevice, match, recognitions),
    ],
  };
}

/** What the user should know before, and can do instead, where a device is not simply driven as it is. */
function recognitionProblems(
  usbDevice: UsbBusDevice,
  match: Match | undefined,
  recognitions: readonly Recognition[],
): readonly Problem[] {
  const active = usbDevice.activeConfiguration;
  if (match === undefined) {
    return [
      {
        id: 'not-driven',
        severity: 'info',
        message: `Nothing here drives it: ${explainNoMatch(usbDevice, active)}.`,
        remedy: adviseOn(usbDevice, recognitions),
      },
    ];
  }
  if (active === undefined || match.configurationValue === active) return [];
  return [
    {
      id: 'other-configuration',
      severity: 'info',
      message:
        `Driving it switches it from configuration ${active} to ${match.configurationValue},` +
        ' and back when it is given back.',
    },
  ];
}

/** The error for a USB device that is listed but that nothing here drives. */
export function unsupportedDevice(device: Device): AppError {
  return new AppError(
    'unsupported-device',
    `${device.name} cannot be driven: ${device.reason ?? 'unknown device'}`,
    {
      details: { deviceId: device.id },
    },
  );
}
