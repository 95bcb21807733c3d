import { silentLog } from '../../src/base/log.ts';
import { defaultTxQueueSettings } from '../../src/bql/tx-queue.ts';
import { NcmTx } from '../../src/minidrivers/ncm-tx.ts';
import { frameToTransfer, transferToFrame } from '../../src/minidrivers/plain-framing.ts';
import { Netif } from '../../src/netif/netif.ts';
import { PfifoFast } from '../../src/netif/pfifo-fast.ts';
import type { DriverBinding, DriverHooks, DriverHost } from '../../src/usbnet/minidriver.ts';
import { ProcedureRunner } from '../../src/usbnet/procedure-runner.ts';
import { Transfer } from '../../src/usbnet/transfer.ts';
import type { SubmitResult, Transport, TransportHandler } from '../../src/usbnet/transport.ts';
import { bulkIn, bulkOut, makeDevice } from '../unit/usbnet/hand-made-device.ts';

/** What a frame of 1,514 bytes costs between the qdisc and the transport, both ways through BQL, without any device. */
export interface PathCost {
  readonly path: 'one frame a transfer' | 'ten frames an NTB';
  readonly nsPerFrame: number;
  readonly framesPerSecond: number;
}

const frameBytes = 1514;
const framesPerRound = 20_000;
const rounds = 60;
/** What a sender has at hand when it has its turn. */
const burst = 64;
const macAddress = Uint8Array.of(2, 0, 0, 0, 0, 2);

/** A device that takes everything at once, and reports it when asked to. */
class InstantTransport implements Transport {
  readonly device = makeDevice({ speed: 'super' });
  readonly #out: Transfer[] = [];
  #handler: TransportHandler | undefined;

  setHandler(handler: TransportHandler): void {
    this.#handler = handler;
  }
  makeTransfer(endpointAddress: number, capacity: number, maxPackets: number): Transfer {
    return new Transfer(endpointAddress, new Uint8Array(capacity), maxPackets);
  }
  submit(transfer: Transfer): SubmitResult {
    if (!transfer.isIn) this.#out.push(transfer);
    return 'ok';
  }
  cancel(): void {}
  request(): void {}

  complete(nowUs: number): void {
    for (const transfer of this.#out) {
      transfer.actualLength = transfer.length;
      transfer.completedAtUs = nowUs;
      this.#handler?.handleTransferDone(transfer, nowUs);
    }
    this.#out.length = 0;
  }
}

function bindingOf(multiPacket: boolean, start: (host: DriverHost) => DriverHooks): DriverBinding {
  return {
    name: multiPacket ? 'cdc_ncm' : 'cdc_ether',
    networkFunction: 'ethernet',
    flags: { sendZlp: false, multiPacket, linkInterrupt: false },
    controlInterface: 0,
    dataInterface: 1,
    bulkIn,
    bulkOut,
    statusEndpoint: undefined,
    macAddress,
    hardMtuBytes: frameBytes,
    rxUrbSizeBytes: undefined,
    mtuBytes: 1500,
    maxMtuBytes: 2034,
    maxPacketsPerTransfer: multiPacket ? 40 : 1,
    txBufferBytes: multiPacket ? 16_384 : 2048,
    facts: {},
    start,
  };
}

const plain = bindingOf(false, (host) => ({
  txFixup: (packet, nowUs) => frameToTransfer(host, packet, nowUs),
  rxFixup: (transfer, nowUs) => transferToFrame(host, transfer, nowUs),
}));

const ncm = bindingOf(true, (host) => {
  const tx = new NcmTx(host, {
    geometry: { format: 'ntb16', ndpModulus: 4, modulus: 4, remainder: 2, maxDatagrams: 40, ndpToEnd: false },
    maxNtbBytes: 16_384,
    minTxPacketBytes: 14_336,
    maxPacketBytes: 1024,
    sendZlp: false,
    withCrc: false,
    txTimerUs: 0,
  });
  return {
    txFixup: (packet, nowUs) => tx.add(packet, nowUs),
    hasPendingTx: () => tx.hasPending,
    dropPendingTx: () => tx.drop(),
    rxFixup: () => true,
  };
});

function measure(path: PathCost['path'], binding: DriverBinding): PathCost {
  const transport = new InstantTransport();
  const netif = new Netif({
    transport,
    runner: new ProcedureRunner(transport),
    binding,
    macAddress,
    settings: defaultTxQueueSettings,
    qdisc: new PfifoFast(1000),
    observer: {
      handleReceive: () => {},
      handleCarrier: () => {},
      handlePacketDequeued: () => {},
      handlePacketSent: () => {},
      handlePacketDropped: () => {},
    },
    log: silentLog,
    nowUs: 0,
  });
  transport.setHandler({
    handleTransferDone: (transfer, nowUs) => netif.usbnet.handleTransferDone(transfer, nowUs),
    handleRequestDone: () => {},
    handleGone: () => {},
  });
  netif.open(0, () => {});
  let nowUs = 0;
  const settle = (): void => {
    while (netif.pollAtUs() <= nowUs) netif.poll(nowUs);
  };
  settle();
  if (!netif.carrier) throw new Error('the interface did not come up');
  const frame = new Uint8Array(frameBytes).fill(0xa5);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const before = netif.usbnet.stats.txPackets;
    const begin = process.hrtime.bigint();
    while (netif.usbnet.stats.txPackets - before < framesPerRound) {
      for (let i = 0; i < burst; i++) {
        const packet = netif.packets.take();
        if (packet === undefined || netif.qdisc.length >= 4 * burst) {
          packet?.release();
          break;
        }
        packet.bytes.set(frame);
        packet.length = frameBytes;
        netif.transmit(packet, nowUs);
      }
      settle();
      nowUs += 100;
      transport.complete(nowUs);
      settle();
    }
    const ns = Number(process.hrtime.bigint() - begin) / (netif.usbnet.stats.txPackets - before);
    best = Math.min(best, ns);
  }
  return { path, nsPerFrame: best, framesPerSecond: 1e9 / best };
}

export function measurePaths(): readonly PathCost[] {
  return [measure('one frame a transfer', plain), measure('ten frames an NTB', ncm)];
}
