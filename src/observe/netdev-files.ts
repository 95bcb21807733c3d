import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** The USB device behind a netdev. */
export interface NetdevUsbDevice {
  /** The kernel's name: `<bus>-<port path>`. */
  readonly name: string;
  readonly vendorId: number;
  readonly productId: number;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  /** As in sysfs, Mbit/s: "480", "5000". */
  readonly speedMbit: string | undefined;
}

/** What sysfs says of a network interface and changes seldom. */
export interface NetdevDescription {
  readonly name: string;
  /** The kernel's number for it: another one each time that it appears. */
  readonly index: number;
  readonly function: 'ethernet' | 'wwan' | undefined;
  readonly macAddress: string | undefined;
  readonly mtuBytes: number;
  /** The longest that its qdisc may become, packets (`tx_queue_len`). */
  readonly queueLengthPackets: number;
  /** `down` is what no program has switched on. */
  readonly operState: string;
  /** The kernel driver of the device behind it; undefined where there is no device (veth, bridges, tunnels). */
  readonly driver: string | undefined;
  readonly driverVersion: string | undefined;
  /** What the device hangs on (`usb`, `pci`, `virtio`, …) and where. */
  readonly bus: string | undefined;
  readonly busAddress: string | undefined;
  readonly usb: NetdevUsbDevice | undefined;
  /** `tx-0`, `tx-1`, … */
  readonly txQueues: readonly string[];
  /** Those of them that the kernel keeps Byte Queue Limits for. */
  readonly bqlQueues: readonly string[];
}

const ethernetType = 1;
const loopbackType = 772;

/** The kernel's own rule, and nothing that a shell or tc's command language would take for more than a letter. */
const netdevName = /^(?!\.{1,2}$)[^\s/:'"\\#`$]{1,15}$/;

export function isNetdevName(text: string): boolean {
  return netdevName.test(text);
}

/** Linux's files about network interfaces. Nothing here needs a permission to look. */
export class NetdevFiles {
  readonly #root: string;

  /** @param root where the file system starts; for tests */
  constructor(root = '/') {
    this.#root = root;
  }

  /** All interfaces, by name; empty where there is no sysfs. */
  async names(): Promise<string[]> {
    const entries = await readdir(this.#path('sys/class/net')).catch(() => []);
    return entries.filter(isNetdevName).sort();
  }

  /** The folder of one interface. */
  folder(name: string): string {
    return this.#path('sys/class/net', name);
  }

  /** A queue's folder with the files of spec 1.5, below {@link folder}. */
  limitsFolder(name: string, queue: string): string {
    return join(this.folder(name), 'queues', queue, 'byte_queue_limits');
  }

  /** The kernel's number for an interface; undefined if there is none of this name. */
  async index(name: string): Promise<number | undefined> {
    return isNetdevName(name) ? numberIn(await this.#read(name, 'ifindex')) : undefined;
  }

  /** Undefined if there is no such interface (or it is going at this moment), and for the loopback interface. */
  async describe(name: string): Promise<NetdevDescription | undefined> {
    const index = await this.index(name);
    const type = index === undefined ? undefined : numberIn(await this.#read(name, 'type'));
    if (index === undefined || type === undefined || type === loopbackType) return undefined;
    const [device, macAddress, mtu, queueLength, operState, uevent, queues] = await Promise.all([
      realpath(join(this.folder(name), 'device')).catch(() => undefined),
      this.#read(name, 'address'),
      this.#read(name, 'mtu'),
      this.#read(name, 'tx_queue_len'),
      this.#read(name, 'operstate'),
      this.#read(name, 'uevent'),
      readdir(join(this.folder(name), 'queues')).catch((): string[] => []),
    ]);
    const txQueues = queues.filter((queue) => /^tx-\d+$/.test(queue)).sort(byNumber);
    const bqlQueues: string[] = [];
    for (const queue of txQueues) {
      const files: string[] = await readdir(this.limitsFolder(name, queue)).catch(() => []);
      if (files.includes('inflight') && files.includes('limit')) bqlQueues.push(queue);
    }
    return {
      name,
      index,
      function: /^DEVTYPE=wwan$/m.test(uevent ?? '')
        ? 'wwan'
        : type === ethernetType
          ? 'ethernet'
          : undefined,
      macAddress: macAddress === '' ? undefined : macAddress,
      mtuBytes: numberIn(mtu) ?? Number.NaN,
      queueLengthPackets: numberIn(queueLength) ?? Number.NaN,
      operState: operState ?? 'unknown',
      ...(await this.#describeDevice(device)),
      txQueues,
      bqlQueues,
    };
  }

  async #describeDevice(
    device: string | undefined,
  ): Promise<Pick<NetdevDescription, 'driver' | 'driverVersion' | 'bus' | 'busAddress' | 'usb'>> {
    if (device === undefined) {
      return {
        driver: undefined,
        driverVersion: undefined,
        bus: undefined,
        busAddress: undefined,
        usb: undefined,
      };
    }
    const [driver, module, bus, driverVersion, usb] = await Promise.all([
      linkName(join(device, 'driver')),
      linkName(join(device, 'driver/module')),
      linkName(join(device, 'subsystem')),
      readText(join(device, 'driver/module/version')),
      findUsbDevice(device),
    ]);
    return {
      driver: driver ?? module,
      driverVersion,
      bus,
      busAddress: basename(device),
      usb,
    };
  }

  /** The IPv4 address of the default gateway through this interface (of the main routing table), if there is one. */
  async gateway(name: string): Promise<string | undefined> {
    return findGateway((await readText(this.#path('proc/net/route'))) ?? '', name);
  }

  /** Whether the interface has a link; undefined where that is not known (it is down). May wait for the driver. */
  async carrier(name: string): Promise<boolean | undefined> {
    const text = await this.#read(name, 'carrier');
    return text === undefined ? undefined : text === '1';
  }

  /** The link's speed; undefined where the driver knows none. May wait for the driver, and that for the device. */
  async linkBitsPerSecond(name: string): Promise<number | undefined> {
    const megabits = numberIn(await this.#read(name, 'speed'));
    // -1, in whichever form: unknown.
    return megabits === undefined || megabits <= 0 || megabits >= 0x7fff_ffff ? undefined : megabits * 1e6;
  }

  #read(name: string, file: string): Promise<string | undefined> {
    return readText(join(this.folder(name), file));
  }

  #path(...parts: string[]): string {
    return join(this.#root, ...parts);
  }
}

const gatewayFlag = 0x2;
const routeColumns = { netdev: 0, destination: 1, gateway: 2, flags: 3, metric: 6, mask: 7 } as const;

/** Finds the default gateway through a netdev in the text of /proc/net/route: that of the lowest metric. */
export function findGateway(routes: string, netdev: string): string | undefined {
  let best: { readonly metric: number; readonly gateway: string } | undefined;
  for (const line of routes.split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    const hex = (column: keyof typeof routeColumns): number =>
      Number.parseInt(fields[routeColumns[column]] ?? '', 16);
    if (fields[routeColumns.netdev] !== netdev || (hex('flags') & gatewayFlag) === 0) continue;
    if (hex('destination') !== 0 || hex('mask') !== 0) continue;
    const metric = Number(fields[routeColumns.metric]);
    if (best === undefined || metric < best.metric) best = { metric, gateway: addressOf(hex('gateway')) };
  }
  return best?.gateway;
}

/** An address as the kernel prints it there: a word of memory, its bytes in this processor's order. */
function addressOf(word: number): string {
  const bytes = new Uint8Array(Uint32Array.of(word).buffer);
  return [...bytes].join('.');
}

/** Goes up from an interface of a device to the USB device, if it is one. */
async function findUsbDevice(device: string): Promise<NetdevUsbDevice | undefined> {
  for (let folder = device; folder !== dirname(folder); folder = dirname(folder)) {
    if (!/^\d+-\d+(\.\d+)*$/.test(basename(folder))) continue;
    const [vendorId, productId, manufacturer, product, speedMbit] = await Promise.all(
      ['idVendor', 'idProduct', 'manufacturer', 'product', 'speed'].map((file) =>
        readText(join(folder, file)),
      ),
    );
    if (vendorId === undefined || productId === undefined) continue;
    return {
      name: basename(folder),
      vendorId: Number.parseInt(vendorId, 16),
      productId: Number.parseInt(productId, 16),
      manufacturer,
      product,
      speedMbit,
    };
  }
  return undefined;
}

async function readText(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  const trimmed = text?.trim();
  return trimmed === '' ? undefined : trimmed;
}

async function linkName(path: string): Promise<string | undefined> {
  const target = await readlink(path).catch(() => undefined);
  return target === undefined ? undefined : basename(target);
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : undefined;
}

/** `tx-10` after `tx-9`. */
function byNumber(a: string, b: string): number {
  return Number(a.slice(a.indexOf('-') + 1)) - Number(b.slice(b.indexOf('-') + 1));
}
