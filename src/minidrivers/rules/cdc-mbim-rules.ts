import type { DeviceRule } from '../device-rule.ts';

const mbim = [0x02, 0x0e, 0x00];

/** cdc_mbim's table in the order of Linux 7.3 (spec 3.3), but for functions that are NCM and MBIM in one. */
export const cdcMbimRules: readonly DeviceRule[] = [
  { ids: ['0bdb', '2dee:4d53'], triple: mbim },
  { ids: ['12d1', '03f0:a31d'], triple: mbim, quirks: ['ndp-to-end'] },
  {
    ids: ['1bc7:1041', '1bc7:1061', '1bc7:1071', '1bc7:1081'],
    triple: mbim,
    quirks: ['avoid-altsetting-toggle', 'send-zlp'],
  },
  { triple: mbim, quirks: ['send-zlp'] },
];

/** An NCM function whose control interface can be switched to MBIM. */
export const ncmMbimRules: readonly DeviceRule[] = [
  { triple: [0x02, 0x0d, 0x00], quirks: ['ncm-mbim-combined'] },
];
