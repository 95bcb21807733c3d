import { fromHex } from '../../../src/base/bytes.ts';

/**
 * The `descriptors` file of Linux's own NCM gadget (usb_f_ncm, high speed): interface 0 with the interrupt endpoint
 * 0x85, interface 1 whose altsetting 1 has the bulk endpoints 0x81 and 0x02.
 */
export const ncmGadgetDescriptors =
  fromHex(
    '12010002000000406b1d030103070102' +
      '030109025e000201008001080b000202' +
      '0d00070904000001020d000405240010' +
      '0105240600010d240f0500000000ea05' +
      '00000006241a00011107058503100009' +
      '09040100000a00010609040101020a00' +
      '01060705810200020007050202000200',
  ) ?? new Uint8Array(0);
