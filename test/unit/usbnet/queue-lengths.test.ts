import { describe, expect, test } from 'vitest';
import { queueLengths } from '../../../src/usbnet/queue-lengths.ts';
import type { UsbSpeed } from '../../../src/usbnet/transport.ts';

describe('TX_QLEN and RX_QLEN (the table of spec 2.2)', () => {
  // Name, hard_mtu, rx_urb_size at high speed and at SuperSpeed; then tx_qlen and rx_qlen at both.
  test.each([
    ['plain Ethernet', 1514, 1514, 1514, [60, 60], [300, 300]],
    ['ax88179_178a', 1514, 24_576, 20_480, [60, 3], [300, 22]],
    ['asix 772', 1514, 2048, 2048, [60, 44], [300, 222]],
    ['rndis_host', 1558, 2048, 2048, [58, 44], [292, 222]],
    ['cdc_ncm with NTBs of 16 KiB', 16_384, 16_384, 16_384, [5, 5], [27, 27]],
    ['cdc_ncm with NTBs of 32 KiB', 32_768, 32_768, 32_768, [2, 2], [13, 13]],
    ['cdc_eem', 1520, 1520, 1520, [59, 59], [299, 299]],
  ])('%s', (_name, hardMtu, highUrb, superUrb, high, superSpeed) => {
    const lengths = (speed: UsbSpeed, urb: number): readonly number[] => {
      const { txQlen, rxQlen } = queueLengths(speed, urb, hardMtu);
      return [txQlen, rxQlen];
    };
    expect(lengths('high', highUrb)).toEqual(high);
    expect(lengths('super', superUrb)).toEqual(superSpeed);
    expect(lengths('super-plus', superUrb)).toEqual(superSpeed);
    for (const speed of ['low', 'full', 'unknown'] as const) expect(lengths(speed, highUrb)).toEqual([4, 4]);
  });

  test('a size that is not known yet counts as four of each', () => {
    expect(queueLengths('super', 0, 1514)).toEqual({ rxQlen: 4, txQlen: 4 });
    expect(queueLengths('super', 1514, 0)).toEqual({ rxQlen: 4, txQlen: 4 });
  });

  test('there is no minimum of one', () => {
    expect(queueLengths('high', 91_081, 91_081)).toEqual({ rxQlen: 0, txQlen: 0 });
  });
});
