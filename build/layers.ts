/**
 * Who may import whom: the architecture as data. `test/unit/layers.test.ts` reads it and fails on an import that
 * is not listed, on a package that is not listed, and on a folder that has no row.
 *
 * A row's `imports` are whole layers; a layer may always import itself. `packages` are the npm packages and Node
 * built-ins ("node:*" stands for all of them) that its files may name. Type-only imports count like any other.
 */

export type LayerName =
  | 'base'
  | 'wire'
  | 'bql'
  | 'usbnet'
  | 'minidrivers'
  | 'linux'
  | 'transports'
  | 'identify'
  | 'sim'
  | 'netif'
  | 'ip'
  | 'modem'
  | 'probes'
  | 'statistics'
  | 'observe'
  | 'tap'
  | 'contract'
  | 'rpc'
  | 'engine'
  | 'recording'
  | 'report'
  | 'hosts'
  | 'electron'
  | 'renderer';

export interface Layer {
  /** Folder, relative to the repository. */
  readonly folder: string;
  readonly imports: readonly LayerName[];
  readonly packages: readonly string[];
  /** Core layers are synchronous and clock-free: no Node, no browser, no timer, no `Date`, no `Math.random`. */
  readonly core: boolean;
}

export const layers: Readonly<Record<LayerName, Layer>> = {
  base: { folder: 'src/base', imports: [], packages: [], core: true },
  wire: { folder: 'src/wire', imports: ['base'], packages: [], core: true },
  bql: { folder: 'src/bql', imports: ['base'], packages: [], core: true },
  usbnet: { folder: 'src/usbnet', imports: ['base', 'wire', 'bql'], packages: [], core: true },
  minidrivers: { folder: 'src/minidrivers', imports: ['base', 'wire', 'usbnet'], packages: [], core: true },
  // Descriptors that somebody has printed: listings of lsusb and the kernel, hexadecimal, binary.
  identify: {
    folder: 'src/identify',
    imports: ['base', 'wire', 'usbnet', 'minidrivers'],
    packages: [],
    core: true,
  },
  // System calls that Node does not offer, and waiting for files that its event loop cannot wait for.
  linux: { folder: 'src/linux', imports: [], packages: ['node:*', 'koffi'], core: false },
  // The USB edge: the only place that knows libusb and usbfs.
  transports: {
    folder: 'src/transports',
    imports: ['base', 'wire', 'linux', 'usbnet'],
    packages: ['usb', 'node:*'],
    core: false,
  },
  sim: { folder: 'src/sim', imports: ['base', 'wire', 'usbnet'], packages: [], core: true },
  netif: { folder: 'src/netif', imports: ['base', 'wire', 'bql', 'usbnet'], packages: [], core: true },
  ip: { folder: 'src/ip', imports: ['base', 'wire', 'usbnet', 'netif'], packages: [], core: true },
  modem: { folder: 'src/modem', imports: ['base', 'wire', 'usbnet'], packages: [], core: true },
  probes: { folder: 'src/probes', imports: ['base', 'wire', 'netif', 'ip'], packages: ['zod'], core: true },
  // What an experiment's measurements come to: comparison, verdict, grades.
  statistics: { folder: 'src/statistics', imports: ['base'], packages: ['hdr-histogram-js'], core: true },
  observe: { folder: 'src/observe', imports: ['base'], packages: ['node:*'], core: false },
  // A network interface of the host's own, fed by us.
  tap: { folder: 'src/tap', imports: ['base', 'linux'], packages: ['node:*'], core: false },
  // The contract is imported by both ends and imports neither.
  contract: { folder: 'src/contract', imports: ['base'], packages: ['zod'], core: true },
  rpc: { folder: 'src/rpc', imports: ['base', 'contract'], packages: ['zod'], core: true },
  engine: {
    folder: 'src/engine',
    imports: [
      'base',
      'wire',
      'bql',
      'usbnet',
      'minidrivers',
      'linux',
      'transports',
      'sim',
      'netif',
      'ip',
      'modem',
      'probes',
      'statistics',
      'observe',
      'tap',
      'contract',
      'rpc',
    ],
    packages: ['node:*'],
    core: false,
  },
  recording: {
    folder: 'src/recording',
    imports: ['base', 'contract', 'engine'],
    packages: ['node:*', 'libsql'],
    core: false,
  },
  report: {
    folder: 'src/report',
    imports: ['base', 'contract', 'recording', 'statistics'],
    packages: ['node:*'],
    core: false,
  },
  // The composition roots: a host may see everything behind the contract, and `doctor` says what a TAP lacks.
  hosts: {
    folder: 'src/hosts',
    imports: [
      'base',
      'wire',
      'bql',
      'usbnet',
      'minidrivers',
      'identify',
      'linux',
      'transports',
      'sim',
      'netif',
      'ip',
      'modem',
      'probes',
      'statistics',
      'observe',
      'tap',
      'contract',
      'rpc',
      'engine',
      'recording',
      'report',
    ],
    packages: ['node:*', 'commander', 'ws', 'pino'],
    core: false,
  },
  electron: {
    folder: 'electron',
    imports: ['base', 'contract', 'rpc', 'hosts'],
    packages: ['electron', 'node:*'],
    core: false,
  },
  renderer: {
    folder: 'renderer',
    imports: ['base', 'contract', 'rpc'],
    packages: ['preact', '@preact/signals', 'chart.js'],
    core: false,
  },
};
