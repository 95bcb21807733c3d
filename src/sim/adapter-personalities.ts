import type { SimPersonality } from './personality.ts';
import type { LinkProfile } from './sim-network.ts';

const mbit = 1_000_000;
/** Preamble 8, FCS 4, gap 12 (spec 5.1). */
const ethernetOverheadBytes = 24;
const hostQueueBytes = 64 * 1024;

function wire(bitsPerSecond: number): LinkProfile {
  return {
    upBitsPerSecond: bitsPerSecond,
    downBitsPerSecond: bitsPerSecond,
    overheadBytes: ethernetOverheadBytes,
    delayUs: 100,
    downQueueBytes: 128 * 1024,
  };
}

/**
 * Ethernet adapters with ASIX' chips. Their product ids are the chips' own, since drivers know chips by nothing else; the
 * rates are those of the wires, whatever the chip could do.
 */
export const adapterPersonalities: readonly SimPersonality[] = [
  {
    // The adapter of the kernel's patch: DELOCK 66045. A real AX88179 ends at 1 Gbit/s; here the wire alone sets the rate.
    name: 'adapter-2500mbit',
    description: 'USB 3 Ethernet adapter (ASIX AX88179) on a 2.5 Gbit/s wire',
    function: 'ethernet',
    firmware: 'ax88179',
    speed: 'super',
    productId: 0x1790,
    product: 'Queuescope virtual AX88179',
    link: wire(2500 * mbit),
    fifoBytes: 40 * 1024,
    hysteresisBytes: 16 * 1024,
    hostQueueBytes,
  },
  {
    // As DELOCK 61969.
    name: 'adapter-usb2-1gbe',
    description: 'USB 2 Ethernet adapter (ASIX AX88178) on a 1 Gbit/s wire',
    function: 'ethernet',
    firmware: 'ax88178',
    speed: 'high',
    productId: 0x1780,
    product: 'Queuescope virtual AX88178',
    link: wire(1000 * mbit),
    fifoBytes: 16 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'adapter-usb2-100mbit',
    description: 'USB 2 Ethernet adapter (ASIX AX88772A) on a 100 Mbit/s wire',
    function: 'ethernet',
    firmware: 'ax88772a',
    speed: 'high',
    productId: 0x772a,
    product: 'Queuescope virtual AX88772A',
    link: wire(100 * mbit),
    fifoBytes: 8 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'adapter-usb2-10mbit',
    description: 'USB 2 Ethernet adapter of the first kind (ASIX AX88172) on a 10 Mbit/s wire',
    function: 'ethernet',
    firmware: 'ax88172',
    speed: 'high',
    productId: 0x1720,
    product: 'Queuescope virtual AX88172',
    link: wire(10 * mbit),
    fifoBytes: 4 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
];
