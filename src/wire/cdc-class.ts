/** Numbers of the USB communications device class (spec 3.0): classes, class requests, packet filter. */

export const usbClasses = {
  communications: 0x02,
  data: 0x0a,
  wirelessController: 0xe0,
  miscellaneous: 0xef,
  vendorSpecific: 0xff,
} as const;

/** Subclasses of {@link usbClasses.communications}. */
export const cdcSubclasses = {
  acm: 0x02,
  ecm: 0x06,
  mdlm: 0x0a,
  obex: 0x0b,
  eem: 0x0c,
  ncm: 0x0d,
  mbim: 0x0e,
} as const;

/** Protocols of control and data interfaces. */
export const cdcProtocols = {
  none: 0x00,
  /** Of a data interface. */
  ncmNtb: 0x01,
  /** Of a data interface. */
  mbimNtb: 0x02,
  /** Of the one interface of an EEM function. */
  eem: 0x07,
  /** With {@link cdcSubclasses.acm}: RNDIS. */
  vendor: 0xff,
} as const;

/** `bmRequestType` of class requests to an interface. */
export const cdcRequestTypes = { in: 0xa1, out: 0x21 } as const;

/** `bRequest` of class requests. */
export const cdcRequests = {
  sendEncapsulatedCommand: 0x00,
  getEncapsulatedResponse: 0x01,
  setLineCoding: 0x20,
  getLineCoding: 0x21,
  setControlLineState: 0x22,
  sendBreak: 0x23,
  setEthernetMulticastFilters: 0x40,
  setEthernetPowerManagementPatternFilter: 0x41,
  getEthernetPowerManagementPatternFilter: 0x42,
  setEthernetPacketFilter: 0x43,
  getEthernetStatistic: 0x44,
  getNtbParameters: 0x80,
  getNetAddress: 0x81,
  setNetAddress: 0x82,
  getNtbFormat: 0x83,
  setNtbFormat: 0x84,
  getNtbInputSize: 0x85,
  setNtbInputSize: 0x86,
  getMaxDatagramSize: 0x87,
  setMaxDatagramSize: 0x88,
  getCrcMode: 0x89,
  setCrcMode: 0x8a,
} as const;

/** Bits of the value of {@link cdcRequests.setEthernetPacketFilter}. */
export const packetFilterBits = {
  promiscuous: 0x01,
  allMulticast: 0x02,
  directed: 0x04,
  broadcast: 0x08,
  multicast: 0x10,
} as const;

/** Bits of `bmNetworkCapabilities` in the functional descriptors of NCM and MBIM. */
export const ncmCapabilityBits = {
  ethernetFilter: 0x01,
  netAddress: 0x02,
  encapsulatedCommand: 0x04,
  maxDatagramSize: 0x08,
  crcMode: 0x10,
  /** SET_NTB_INPUT_SIZE has a form of 8 bytes as well. */
  ntbInputSize8: 0x20,
} as const;
