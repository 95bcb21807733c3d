import { adapterPersonalities } from './adapter-personalities.ts';
import { tetherPersonalities } from './tether-personalities.ts';
import type { SimPersonality } from './personality.ts';

/** What each frame costs on an Ethernet wire beyond its own bytes: preamble 8, FCS 4, gap 12 (spec 5.1). */
const ethernetOverheadBytes = 24;

const mbit = 1_000_000;

/** A base station keeps this much for one subscriber; a switch port less. */
const cellQueueBytes = 256 * 1024;
const switchQueueBytes = 128 * 1024;
const hostQueueBytes = 64 * 1024;

/**
 * The virtual devices that everyone has, the most telling first: a USB 3 modem whose driver queue of 300 frames takes
 * 364 ms to drain over its 10 Mbit/s uplink.
 */
export const catalogue: readonly SimPersonality[] = [
  {
    name: 'modem-10mbit',
    description: 'USB 3 cellular modem (CDC ECM): 10 Mbit/s up, 50 Mbit/s down, 12 ms each way',
    function: 'wwan',
    firmware: 'cdc-ecm',
    speed: 'super',
    productId: 0x0001,
    product: 'Queuescope virtual modem',
    link: {
      upBitsPerSecond: 10 * mbit,
      downBitsPerSecond: 50 * mbit,
      overheadBytes: 0,
      delayUs: 12_000,
      downQueueBytes: cellQueueBytes,
    },
    fifoBytes: 4096,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'adapter-100mbit',
    description: 'USB 3 Ethernet adapter (CDC NCM) on a 100 Mbit/s wire',
    function: 'ethernet',
    firmware: 'cdc-ncm',
    speed: 'super',
    productId: 0x0002,
    product: 'Queuescope virtual Ethernet adapter',
    link: {
      upBitsPerSecond: 100 * mbit,
      downBitsPerSecond: 100 * mbit,
      overheadBytes: ethernetOverheadBytes,
      delayUs: 100,
      downQueueBytes: switchQueueBytes,
    },
    fifoBytes: 16 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'modem-usb2-10mbit',
    description: 'USB 2 cellular modem (CDC ECM): 10 Mbit/s up, 50 Mbit/s down, 12 ms each way',
    function: 'wwan',
    firmware: 'cdc-ecm',
    speed: 'high',
    productId: 0x0003,
    product: 'Queuescope virtual USB 2 modem',
    link: {
      upBitsPerSecond: 10 * mbit,
      downBitsPerSecond: 50 * mbit,
      overheadBytes: 0,
      delayUs: 12_000,
      downQueueBytes: cellQueueBytes,
    },
    fifoBytes: 4096,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'tether-usb2',
    description: 'USB 2 phone tethering (CDC NCM): 40 Mbit/s up, 150 Mbit/s down, 10 ms each way',
    function: 'ethernet',
    firmware: 'cdc-ncm',
    speed: 'high',
    productId: 0x0004,
    product: 'Queuescope virtual phone',
    link: {
      upBitsPerSecond: 40 * mbit,
      downBitsPerSecond: 150 * mbit,
      overheadBytes: 0,
      delayUs: 10_000,
      downQueueBytes: cellQueueBytes,
    },
    // Two NTBs: a phone takes the next one while it takes the last one apart.
    fifoBytes: 32 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  ...adapterPersonalities,
  ...tetherPersonalities,
];

/** The virtual device of that name. */
export function findPersonality(name: string): SimPersonality | undefined {
  return catalogue.find((personality) => personality.name === name);
}
