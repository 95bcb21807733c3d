/** What a printed descriptor is of; `heading` is the line that names a device before its descriptors. */
export type PrintedKind =
  'heading' | 'device' | 'configuration' | 'association' | 'interface' | 'endpoint' | 'functional' | 'other';

/** Fields of standard descriptors, under their names in the specification. */
export type FieldName =
  | 'bcdUSB'
  | 'bDeviceClass'
  | 'bDeviceSubClass'
  | 'bDeviceProtocol'
  | 'bMaxPacketSize0'
  | 'idVendor'
  | 'idProduct'
  | 'bcdDevice'
  | 'iManufacturer'
  | 'iProduct'
  | 'iSerial'
  | 'bNumConfigurations'
  | 'wTotalLength'
  | 'bNumInterfaces'
  | 'bConfigurationValue'
  | 'iConfiguration'
  | 'bmAttributes'
  /** Milliamperes, as it is printed. */
  | 'MaxPower'
  | 'bFirstInterface'
  | 'bInterfaceCount'
  | 'bFunctionClass'
  | 'bFunctionSubClass'
  | 'bFunctionProtocol'
  | 'iFunction'
  | 'bInterfaceNumber'
  | 'bAlternateSetting'
  | 'bNumEndpoints'
  | 'bInterfaceClass'
  | 'bInterfaceSubClass'
  | 'bInterfaceProtocol'
  | 'iInterface'
  | 'bEndpointAddress'
  | 'wMaxPacketSize'
  | 'bInterval'
  | 'bMaxBurst';

/** One descriptor as it was printed, in whatever format: what could be read of it. */
export interface PrintedDescriptor {
  readonly kind: PrintedKind;
  /** The line on which it begins, from 1. */
  readonly line: number;
  readonly fields: ReadonlyMap<FieldName, number>;
  readonly manufacturer?: string;
  readonly product?: string;
  /** Of a functional descriptor: all of it. */
  readonly bytes?: Uint8Array;
  /** Of a configuration or an altsetting: marked as the one in use. */
  readonly inUse?: boolean;
  /** Of an interface: the driver that has it; the empty string: none. */
  readonly kernelDriver?: string;
}

/** A remark on what was read. */
export interface ReadWarning {
  readonly line: number;
  readonly message: string;
}

/** What a reader made of a text. */
export interface PrintedText {
  readonly descriptors: readonly PrintedDescriptor[];
  readonly warnings: readonly ReadWarning[];
}
