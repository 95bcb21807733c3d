import type { DeviceRule } from '../device-rule.ts';

const ncm = [0x02, 0x0d, 0x00];

/** cdc_ncm's table in the order of Linux 7.3 (spec 3.2). */
export const cdcNcmRules: readonly DeviceRule[] = [
  {
    interfaceNumbers: { '05ac:12a8': [2], '05ac:12ab': [2] },
    chip: 'Apple tethering',
    quirks: ['send-zlp'],
  },
  {
    interfaceNumbers: { '05ac:12a8': [4], '05ac:12ab': [4], '05ac:1902': [0, 2], '05ac:1905': [0, 2] },
    chip: 'Apple private',
    quirks: ['send-zlp', 'no-link-interrupt'],
  },
  { ids: ['0bdb'], triple: ncm, networkFunction: 'wwan' },
  {
    ids: ['1bc7:0036', '413c:81bb', '413c:81bc', '1519:0443'],
    triple: ncm,
    networkFunction: 'wwan',
    quirks: ['no-arp'],
  },
  { ids: ['413c', '0930', '12d1', '1546:1010', '8087:095a'], triple: ncm, networkFunction: 'wwan' },
  { ids: ['17e9'], triple: ncm, quirks: ['send-zlp'] },
  { triple: ncm },
];

/** huawei_cdc_ncm's table (spec 3.7). */
export const huaweiCdcNcmRules: readonly DeviceRule[] = [
  [0xff, 0x02, 0x16],
  [0xff, 0x02, 0x46],
  [0xff, 0x02, 0x76],
  [0xff, 0x03, 0x16],
].map((triple) => ({ ids: ['12d1'], triple, quirks: ['ndp-to-end', 'prefer-ntb32'] }));
