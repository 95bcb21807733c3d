import type { DeviceRule } from '../device-rule.ts';

const vendor = [0xff, 0xff, 0x00];

/** ax88179_178a's table (Linux 7.3, spec 3.9). The later revisions of the chip have an NCM configuration besides. */
export const ax88179Rules: readonly DeviceRule[] = [
  { chip: 'AX88178A', ids: ['0b95:178a'], triple: vendor },
  {
    chip: 'AX88179',
    triple: vendor,
    ids: [
      '0b95:1790',
      '04b4:3610',
      '2001:4a00',
      '0df6:0072',
      '04e8:a100',
      '17ef:304b',
      '050d:0128',
      '0930:0a13',
      '0711:0179',
      '07c9:000e',
      '07c9:000f',
      '07c9:0010',
    ],
  },
];
