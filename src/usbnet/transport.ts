import type { ConfigurationDescriptor, DeviceDescriptor } from '../wire/usb-descriptor.ts';
import type { Transfer, TransferStatus } from './transfer.ts';

/** The speed a device was enumerated at: 1.5, 12, 480 Mbit/s, 5, 10 Gbit/s. */
export type UsbSpeed = 'low' | 'full' | 'high' | 'super' | 'super-plus' | 'unknown';

/** What a USB device says of itself, as far as a driver needs it. */
export interface UsbDevice {
  readonly speed: UsbSpeed;
  readonly descriptor: DeviceDescriptor;
  /** The active configuration. */
  readonly configuration: ConfigurationDescriptor;
}

/**
 * A request on the control endpoint, or one that host and device must agree on. `set-interface`, `clear-halt` and
 * `reset` are requests of their own, since the host's side changes state with them.
 */
export type DeviceRequest =
  | {
      readonly kind: 'control-in';
      readonly requestType: number;
      readonly request: number;
      readonly value: number;
      readonly index: number;
      /** `wLength`: the most bytes wanted. */
      readonly length: number;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: 'control-out';
      readonly requestType: number;
      readonly request: number;
      readonly value: number;
      readonly index: number;
      readonly data: Uint8Array;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: 'set-interface';
      readonly interfaceNumber: number;
      readonly alternateSetting: number;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'clear-halt'; readonly endpointAddress: number; readonly timeoutMs: number }
  | { readonly kind: 'reset'; readonly timeoutMs: number };

export interface RequestResult {
  readonly status: TransferStatus;
  /** `control-in`: the bytes that came; else empty. */
  readonly data: Uint8Array;
}

/** What a bus did with a transfer that was handed to it; anything but `ok`: it was not taken, and never will end. */
export type SubmitResult = 'ok' | 'stall' | 'gone' | 'no-memory' | 'failed';

/** The driver, as its transport sees it. Never called from inside a call to the transport. */
export interface TransportHandler {
  /** A submitted transfer has ended; `transfer.status` and `actualLength` say how. */
  handleTransferDone(transfer: Transfer, nowUs: number): void;
  handleRequestDone(result: RequestResult, nowUs: number): void;
  /** The device is gone. Every transfer that is still out ends with `gone` or `cancelled`, before or after this. */
  handleGone(nowUs: number): void;
}

/**
 * A USB device that is open for one driver: the port between usbnet and whatever moves its bytes (libusb, USB/IP, the
 * simulator), and between each of these and its wrappers (faults, traces).
 *
 * Synchronous: nothing here waits. Each transfer that `submit` took is reported exactly once, in the order of their
 * ends; at most one request is out at a time.
 */
export interface Transport {
  readonly device: UsbDevice;

  /** Says who is told. Set once, before anything is submitted. */
  setHandler(handler: TransportHandler): void;

  /**
   * Makes a transfer for an endpoint of the active configuration.
   * @param capacity bytes of its buffer
   * @param maxPackets how many packets the driver will note on it
   */
  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer;

  /** Hands the transfer to the bus. The buffer must not be touched until its end is reported. */
  submit(transfer: Transfer, nowUs: number): SubmitResult;

  /** Asks for the end of a submitted transfer; its end is reported as for any other. A no-op if it ended already. */
  cancel(transfer: Transfer, nowUs: number): void;

  /** Starts a request; its result is reported to the handler. @throws InvariantError while another one is out. */
  request(request: DeviceRequest, nowUs: number): void;
}
