import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface FakeNetdevOptions {
  readonly index?: number;
  /** Transmit queues; all have limits unless `bqlQueues` says otherwise. */
  readonly queues?: number;
  readonly bqlQueues?: number;
  /** Where the device is below `sys/devices`, with its driver's name; none: a virtual interface. */
  readonly device?: { readonly path: string; readonly driver: string; readonly bus: string };
}

const maxLimit = 1_879_048_192;

/** A folder that looks like the parts of a Linux file system that matter for network interfaces. */
export class FakeNetdevs {
  readonly root: string;

  /** @param root a folder that is there already, to be added to */
  constructor(root = mkdtempSync(join(tmpdir(), 'queuescope-netdevs-'))) {
    this.root = root;
    mkdirSync(join(this.root, 'sys/class/net'), { recursive: true });
    this.routes([]);
  }

  write(path: string, content: string | number): void {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, `${content}\n`);
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8').trim();
  }

  /** One file of an interface. */
  set(netdev: string, file: string, content: string | number): void {
    this.write(`sys/class/net/${netdev}/${file}`, content);
  }

  get(netdev: string, file: string): string {
    return this.read(`sys/class/net/${netdev}/${file}`);
  }

  setLimit(netdev: string, file: string, content: number, queue = 0): void {
    this.set(netdev, `queues/tx-${queue}/byte_queue_limits/${file}`, content);
  }

  getLimit(netdev: string, file: string, queue = 0): number {
    return Number(this.get(netdev, `queues/tx-${queue}/byte_queue_limits/${file}`));
  }

  count(netdev: string, counter: string, value: number): void {
    this.set(netdev, `statistics/${counter}`, value);
  }

  add(netdev: string, options: FakeNetdevOptions = {}): void {
    const { index = 7, queues = 1, bqlQueues = queues, device } = options;
    const values = {
      ifindex: index,
      type: 1,
      address: '02:00:00:00:00:01',
      mtu: 1500,
      tx_queue_len: 1000,
      operstate: 'up',
      carrier: 1,
      speed: 1000,
      uevent: `INTERFACE=${netdev}`,
    };
    for (const [file, value] of Object.entries(values)) this.set(netdev, file, value);
    for (const counter of ['bytes', 'packets', 'dropped', 'errors']) {
      this.count(netdev, `tx_${counter}`, 0);
      this.count(netdev, `rx_${counter}`, 0);
    }
    for (let queue = 0; queue < queues; queue++) {
      this.set(netdev, `queues/tx-${queue}/tx_timeout`, 0);
      if (queue < bqlQueues) this.#addLimits(netdev, queue);
    }
    if (device === undefined) return;
    const target = join(this.root, 'sys/devices', device.path);
    mkdirSync(target, { recursive: true });
    symlinkSync(target, join(this.root, 'sys/class/net', netdev, 'device'));
    symlinkSync(join('../drivers', device.driver), join(target, 'driver'));
    symlinkSync(join('../bus', device.bus), join(target, 'subsystem'));
  }

  #addLimits(netdev: string, queue: number): void {
    const values = {
      limit: 0,
      limit_min: 0,
      limit_max: maxLimit,
      inflight: 0,
      hold_time: 1000,
      stall_thrs: 0,
      stall_cnt: 0,
      stall_max: 0,
    };
    for (const [file, value] of Object.entries(values)) this.setLimit(netdev, file, value, queue);
  }

  remove(netdev: string): void {
    rmSync(join(this.root, 'sys/class/net', netdev), { recursive: true });
  }

  /** Default routes: interface, gateway in the kernel's form, metric. */
  routes(routes: readonly (readonly [netdev: string, gateway: string, metric: number])[]): void {
    const lines = routes.map(
      ([netdev, gateway, metric]) =>
        `${netdev}\t00000000\t${gateway}\t0003\t0\t0\t${metric}\t00000000\t0\t0\t0`,
    );
    this.write('proc/net/route', ['Iface\tDestination\tGateway \tFlags', ...lines].join('\n'));
  }

  dispose(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
