import type { DeviceRule } from '../device-rule.ts';

const ecm = [0x02, 0x06, 0x00];
const mdlm = [0x02, 0x0a, 0x00];

/** Sharp's PDAs and their like: their ECM is not quite one, `zaurus` has them (spec 3.1). */
export const zaurusEcmIds: readonly string[] = [
  '04dd:8004',
  '04dd:8005',
  '04dd:8006',
  '04dd:8007',
  '04dd:9031',
  '04dd:9032',
  '04dd:9050',
  '07b4:0f02',
];

/** The same for MDLM. */
export const zaurusMdlmIds: readonly string[] = [
  '04dd:8005',
  '04dd:8006',
  '04dd:8007',
  '04dd:9031',
  '04dd:9032',
  '22b8:6027',
  '22b8:6425',
  '046d:c11f',
];

/** ECM outside, QMI inside: modems of Novatel and what Dell, HP and ADU sold of them. */
export const qmiBehindEcmIds: readonly string[] = [
  '1410:b001',
  '1410:9010',
  '1410:9011',
  '413c:8195',
  '413c:8196',
  '413c:819b',
  '16d5:650a',
  '03f0:421d',
];

/** Aquantia's chips, and Asix' that came of them. */
export const aqc111Ids: readonly string[] = ['2eca:c101', '0b95:2790', '0b95:2791', '20f4:e05a', '1c04:0015'];

/** cdc_ether's table in the order of Linux 7.3 (spec 3.1). */
export const cdcEtherRules: readonly DeviceRule[] = [
  { leave: true, ids: zaurusEcmIds, triple: ecm },
  { leave: true, ids: zaurusMdlmIds, triple: mdlm },
  { leave: true, ids: ['1004:61aa'], triple: ecm },
  { leave: true, ids: qmiBehindEcmIds, triple: ecm },
  { leave: true, interfaceNumbers: { '12d1:14ac': [1] } },
  {
    // An entry to leave them, in Linux; they are ECM nevertheless, and can be driven.
    ids: ['0bda:8153', '17ef:721e', '17ef:a359'],
    triple: ecm,
    note: 'Linux itself keeps the device with r8152 or, where there is none, drives this with r8153_ecm',
  },
  { leave: true, ids: aqc111Ids, triple: ecm },
  {
    networkFunction: 'wwan',
    triple: ecm,
    ids: ['19d2:1003', '19d2:1015', '19d2:1173', '19d2:1177', '19d2:1181', '1bc7', '413c:81ba', '12d1:15c1'],
  },
  { ids: ['19d2'], triple: ecm, chip: 'ZTE', quirks: ['fix-destination-mac'] },
  {
    networkFunction: 'wwan',
    triple: ecm,
    ids: [
      '1546:1143',
      '1546:1104',
      '1546:1313',
      '1546:1343',
      '1e2d:0061',
      '1e2d:0055',
      '1e2d:005b',
      '1e2d:0069',
    ],
  },
  { ids: ['046b:ffb0'], triple: ecm, chip: 'AMI BMC', quirks: ['link-interrupt'] },
  { triple: ecm },
  { triple: mdlm, networkFunction: 'wwan', chip: 'Mobile Broadband Module' },
  { ids: ['12d1'], triple: [0x02, 0x06, 0xff], networkFunction: 'wwan' },
];
