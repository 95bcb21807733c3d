import type { SimPersonality } from './personality.ts';
import type { LinkProfile } from './sim-network.ts';

const mbit = 1_000_000;
const hostQueueBytes = 64 * 1024;
const cellQueueBytes = 256 * 1024;

function cell(upMbit: number, downMbit: number, delayUs: number): LinkProfile {
  return {
    upBitsPerSecond: upMbit * mbit,
    downBitsPerSecond: downMbit * mbit,
    overheadBytes: 0,
    delayUs,
    downQueueBytes: cellQueueBytes,
  };
}

/** Phones, sticks and boards that speak something else than CDC's ECM and NCM. */
export const tetherPersonalities: readonly SimPersonality[] = [
  {
    name: 'tether-rndis',
    description: 'USB 2 phone tethering (RNDIS): 20 Mbit/s up, 80 Mbit/s down, 10 ms each way',
    function: 'ethernet',
    firmware: 'rndis',
    speed: 'high',
    productId: 0x0005,
    product: 'Queuescope virtual RNDIS phone',
    link: cell(20, 80, 10_000),
    fifoBytes: 4096,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'board-eem',
    description: 'USB 2 development board (CDC EEM): 50 Mbit/s each way, 0.1 ms',
    function: 'ethernet',
    firmware: 'cdc-eem',
    speed: 'high',
    productId: 0x0006,
    product: 'Queuescope virtual EEM board',
    link: { ...cell(50, 50, 100), downQueueBytes: 128 * 1024 },
    fifoBytes: 4096,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
  {
    name: 'stick-huawei',
    description: "USB 2 LTE stick (Huawei's NCM): 25 Mbit/s up, 75 Mbit/s down, 15 ms each way",
    function: 'wwan',
    firmware: 'huawei-ncm',
    speed: 'high',
    productId: 0x1506,
    product: 'Queuescope virtual LTE stick',
    link: cell(25, 75, 15_000),
    fifoBytes: 32 * 1024,
    hysteresisBytes: 0,
    hostQueueBytes,
  },
];
