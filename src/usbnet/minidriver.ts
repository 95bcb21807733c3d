import type { Log } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { Packet } from './packet.ts';
import type { Procedure } from './procedure.ts';
import type { UsbnetStats } from './stats.ts';
import type { Transfer } from './transfer.ts';
import type { UsbDevice } from './transport.ts';

/** The minidrivers there are, under Linux's names. */
export type MinidriverName =
  'cdc_ether' | 'cdc_ncm' | 'huawei_cdc_ncm' | 'cdc_eem' | 'rndis_host' | 'ax88179_178a' | 'asix';

/** What a device's function is for (`FLAG_ETHER`, `FLAG_WWAN`). */
export type NetworkFunction = 'ethernet' | 'wwan';

/** `driver_info` flags that change what usbnet does (spec 2.1). */
export interface DriverFlags {
  /** Transfers that end on a packet boundary are closed with a zero-length packet (`FLAG_SEND_ZLP`). */
  readonly sendZlp: boolean;
  /** The driver packs several packets into a transfer, and pads by itself (`FLAG_MULTI_PACKET`). */
  readonly multiPacket: boolean;
  /** The carrier starts off and follows the interrupt endpoint (`FLAG_LINK_INTR`). */
  readonly linkInterrupt: boolean;
}

/** Which part of a device a minidriver would drive. Decided from descriptors alone. */
export interface Match {
  readonly driver: MinidriverName;
  readonly networkFunction: NetworkFunction;
  readonly configurationValue: number;
  readonly controlInterface: number;
  readonly dataInterface: number;
  /** Deviations for this device, by name. */
  readonly quirks: readonly string[];
  /** Why this driver and these interfaces, in one sentence. */
  readonly reason: string;
}

/** What a minidriver may use of usbnet (the kernel's `struct usbnet`, the half that faces the minidriver). */
export interface DriverHost {
  readonly stats: UsbnetStats;
  readonly log: Log;
  /** The carrier is on (`netif_carrier_ok`). */
  readonly carrier: boolean;
  /** A transfer to fill for the bulk OUT endpoint; undefined if all are out (`usb_alloc_urb` without memory). */
  takeTxTransfer(): Transfer | undefined;
  /** Gives back one that is not going to be sent. */
  giveTxTransfer(transfer: Transfer): void;
  /** Hands a received Ethernet frame up (`usbnet_skb_return`); the bytes are valid during the call only. */
  receive(bytes: Uint8Array, offset: number, length: number, nowUs: number): void;
  /** The carrier went up or down (`usbnet_link_change`). */
  linkChange(link: boolean, needReset: boolean, nowUs: number): void;
  /** The device told its speed, bits per second. */
  setLinkSpeed(rxBitsPerSecond: number, txBitsPerSecond: number): void;
  /** Has {@link DriverHooks.work} run as deferred work, once, however often it is asked for until then. */
  scheduleWork(nowUs: number): void;
  /** Receive transfers are to be of another size from now on (`dev->rx_urb_size`). */
  setRxUrbSize(bytes: number): void;
}

/** A minidriver bound to one device: what bind found out (the kernel's `driver_info` and `struct usbnet` after it). */
export interface DriverBinding {
  readonly name: MinidriverName;
  readonly networkFunction: NetworkFunction;
  readonly flags: DriverFlags;
  readonly controlInterface: number;
  readonly dataInterface: number;
  /** Endpoint addresses; the status endpoint is the interrupt IN one. */
  readonly bulkIn: number;
  readonly bulkOut: number;
  readonly statusEndpoint: number | undefined;
  /** 6 bytes; undefined: the device has none, usbnet makes one up. */
  readonly macAddress: Uint8Array | undefined;
  /** `dev->hard_mtu`: the most bytes of one transmit transfer, as far as the queue length is reckoned from it. */
  readonly hardMtuBytes: number;
  /** `hard_header_len`: what a transfer carries beside the MTU's bytes; undefined: what hard_mtu has more than the MTU. */
  readonly hardHeaderBytes?: number | undefined;
  /** `dev->rx_urb_size`; undefined: as hard_mtu, and following it. */
  readonly rxUrbSizeBytes: number | undefined;
  /** MTU to start with, and the largest that can be set. */
  readonly mtuBytes: number;
  readonly maxMtuBytes: number;
  /** The most packets that one transmit transfer can carry. */
  readonly maxPacketsPerTransfer: number;
  /** Room that a transmit transfer needs. */
  readonly txBufferBytes: number;
  /** Facts for the user: NTB sizes and the like, name and value in words. */
  readonly facts: Readonly<Record<string, string>>;

  /** Starts the driver for the usbnet that is going to call it. Called once. */
  start(host: DriverHost): DriverHooks;
}

/** What usbnet calls in a minidriver (the kernel's `driver_info` hooks, spec 2.1). */
export interface DriverHooks {
  /**
   * Turns a packet into a transfer that is ready to be submitted: buffer, `length`, `payloadBytes`, packets. The
   * packet is released by the driver once its bytes are copied. `undefined`: nothing to send now, because the packet
   * was absorbed (`multiPacket`) or is given up. A null packet means: send what has been collected.
   */
  txFixup(packet: Packet | null, nowUs: number): Transfer | undefined;

  /** Takes frames out of a received transfer and hands them to the host. False: the transfer is malformed. */
  rxFixup(transfer: Transfer, nowUs: number): boolean;

  /** The payload of an interrupt transfer: `bytes[0 … length)`. */
  status?(bytes: Uint8Array, length: number, nowUs: number): void;

  /** Packets have been collected and not yet sent. */
  hasPendingTx?(): boolean;
  /** When collected packets must be sent at the latest; absent: when no more are at hand. */
  flushAtUs?(): number;
  /** The time of `flushAtUs` has come. True: what is collected is to be sent now. */
  flushDue?(nowUs: number): boolean;
  /** Forgets collected packets; the interface is being stopped. */
  dropPendingTx?(): void;

  /** When {@link timer} is to be called next; absent: never. */
  timerAtUs?(): number;
  timer?(nowUs: number): void;
  /** What the driver has to do on the control endpoint while the interface is in use. A DriverError is only logged. */
  work?(): Procedure<void>;

  reset?(): Procedure<void>;
  /** False: there is no link, the interface can't be opened. */
  checkConnect?(): Procedure<boolean>;
  stop?(): Procedure<void>;
  /** Sets up the link anew after {@link DriverHost.linkChange}. True: there is one, and the carrier comes up with it. */
  linkReset?(): Procedure<boolean>;
  setRxMode?(mode: RxMode): Procedure<void>;
  /**
   * Chooses the altsetting of the data interface anew, with all that the device forgets by it, while nothing is in flight.
   * Absent: the altsetting alone will do.
   */
  reselect?(): Procedure<void>;
  /**
   * A transfer to the device has ended before all of it had gone over: the device may still wait for the rest of it, and
   * what is sent next has to make sense to it nevertheless.
   */
  handleBrokenTx?(): void;
  /** Transmission was stuck and has been cancelled. */
  recover?(nowUs: number): void;
  /** The driver sets the MTU by itself. False: refused. */
  changeMtu?(mtuBytes: number): boolean;
}

/** Hooks of no driver: nothing is sent, nothing is understood. */
export const idleHooks: DriverHooks = {
  txFixup(packet) {
    packet?.release();
    return undefined;
  },
  rxFixup() {
    return false;
  },
};

/** Which frames the device is to pass up (`IFF_PROMISC`, `IFF_ALLMULTI`, multicast list). */
export interface RxMode {
  readonly promiscuous: boolean;
  readonly multicast: boolean;
}

/** What a user can change about how drivers work. */
export interface DriverTuning {
  /**
   * How long a driver that collects packets waits for more, microseconds (cdc_ncm's `tx_timer_usecs`). 0: not at all; it
   * sends as soon as no more packets are at hand. Timers here are too coarse for the kernel's 400 us.
   */
  readonly txTimerUs: number;
}

/** What bind gets to know. */
export interface BindContext {
  readonly device: UsbDevice;
  readonly match: Match;
  readonly tuning: DriverTuning;
  readonly random: Random;
  readonly log: Log;
}

/** A family of devices and how to drive them. */
export interface Minidriver {
  readonly name: MinidriverName;
  /** Sets the device up and returns its binding. @throws DriverError naming the stage that failed */
  bind(context: BindContext): Procedure<DriverBinding>;
}
