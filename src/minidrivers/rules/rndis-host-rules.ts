import type { DeviceRule } from '../device-rule.ts';

const acm = [0x02, 0x02, 0xff];
const wireless = [0xe0, 0x01, 0x03];

/** rndis_host's table in the order of Linux 7.3 (spec 3.4). */
export const rndisHostRules: readonly DeviceRule[] = [
  { ids: ['1630:0042'], triple: acm, quirks: ['poll-status'] },
  { ids: ['19d2'], triple: wireless, chip: 'ZTE', quirks: ['fix-destination-mac'] },
  { ids: ['19d2'], triple: acm, chip: 'ZTE', quirks: ['fix-destination-mac'] },
  { triple: acm },
  { triple: [0xef, 0x01, 0x01], chip: 'ActiveSync', quirks: ['poll-status'] },
  { triple: wireless },
  { triple: [0xef, 0x04, 0x01] },
];
