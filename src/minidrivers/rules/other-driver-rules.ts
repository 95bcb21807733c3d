import type { DeviceRule } from '../device-rule.ts';
import { aqc111Ids, zaurusEcmIds, zaurusMdlmIds } from './cdc-ether-rules.ts';

/** Tables of drivers that Queuescope does not have (Linux 7.3): enough to say what a device is. */

const ecm = [0x02, 0x06, 0x00];

export const r8152Rules: readonly DeviceRule[] = [
  {
    triple: [0xff],
    ids: [
      '0bda:8050',
      '0bda:8053',
      '0bda:8152',
      '0bda:8153',
      '0bda:8155',
      '0bda:8156',
      '0bda:8157',
      '0bda:815a',
      '045e:07ab',
      '045e:07c6',
      '045e:0927',
      '045e:0c5e',
      '04e8:a101',
      '17ef:304f',
      '17ef:3054',
      '17ef:3062',
      '17ef:3069',
      '17ef:3082',
      '17ef:3098',
      '17ef:7205',
      '17ef:720c',
      '17ef:7214',
      '17ef:721e',
      '17ef:a359',
      '17ef:a387',
      '13b1:0041',
      '0955:09ff',
      '2357:0601',
      '2357:0602',
      '2001:b301',
      '413c:b097',
      '0b05:1976',
      '20f4:e02b',
      '20f4:e02c',
    ],
  },
];

export const aqc111Rules: readonly DeviceRule[] = [{ ids: aqc111Ids, triple: [0xff] }];

/** aqc111 takes this configuration only to leave it for the other one. */
export const aqc111EcmRules: readonly DeviceRule[] = [{ ids: aqc111Ids, triple: ecm }];

export const iphethRules: readonly DeviceRule[] = [{ ids: ['05ac'], triple: [0xff, 0xfd, 0x01] }];

const directIpInterfaces = [7, 10, 11];

export const sierraNetRules: readonly DeviceRule[] = [
  {
    interfaceNumbers: {
      '1199:68a3': directIpInterfaces,
      '0f3d:68a3': directIpInterfaces,
      '1199:68aa': directIpInterfaces,
      '0f3d:68aa': directIpInterfaces,
    },
  },
];

export const zaurusRules: readonly DeviceRule[] = [
  { ids: zaurusEcmIds, triple: ecm },
  { ids: zaurusMdlmIds, triple: [0x02, 0x0a, 0x00] },
];

export const lgVl600Rules: readonly DeviceRule[] = [{ ids: ['1004:61aa'], triple: ecm }];

export const kalmiaRules: readonly DeviceRule[] = [{ ids: ['04e8:6889'] }];

export const cdcPhonetRules: readonly DeviceRule[] = [{ ids: ['0421'], triple: [0x02, 0xfe] }];

export const cx82310EthRules: readonly DeviceRule[] = [{ ids: ['0572:cb01'], deviceClass: 0xff }];

export const sr9700Rules: readonly DeviceRule[] = [
  { ids: ['0fe6:9700'] },
  { interfaceNumbers: { '0fe6:9702': [1] } },
];

export const sr9800Rules: readonly DeviceRule[] = [{ ids: ['0fe6:9800'] }];

export const lan78xxRules: readonly DeviceRule[] = [
  { ids: ['0424:7800', '0424:7850', '0424:7801', '07c9:0012'] },
];

export const smsc95xxRules: readonly DeviceRule[] = [
  {
    ids: [
      '0424:9500',
      '0424:9505',
      '0424:9e00',
      '0424:9e01',
      '0424:ec00',
      '0424:9900',
      '0424:9901',
      '0424:9902',
      '0424:9903',
      '0424:9904',
      '0424:9905',
      '0424:9906',
      '0424:9907',
      '0424:9908',
      '0424:9909',
      '0424:9530',
      '0424:9730',
      '0424:9e08',
      '0878:1400',
      '184f:0051',
    ],
  },
];

export const smsc75xxRules: readonly DeviceRule[] = [{ ids: ['0424:7500', '0424:7505'] }];

export const mcs7830Rules: readonly DeviceRule[] = [
  { ids: ['9710:7832', '9710:7830', '9710:7730', '0df6:0021'] },
];

export const dm9601Rules: readonly DeviceRule[] = [
  {
    ids: [
      '07aa:9601',
      '0a46:9601',
      '0a46:6688',
      '0a46:0268',
      '0a46:8515',
      '0a47:9601',
      '0fe6:8101',
      '0a46:9000',
      '0a46:9620',
      '0a46:9621',
      '0a46:9622',
      '0a46:0269',
      '0a46:1269',
      '0586:3427',
    ],
  },
];

export const ch9200Rules: readonly DeviceRule[] = [{ ids: ['1a86:e092'] }];

export const rtl8150Rules: readonly DeviceRule[] = [
  { ids: ['0bda:8150', '0411:0012', '3980:0003', '07b8:401a', '1557:8150', '0586:401a'] },
];

export const catcRules: readonly DeviceRule[] = [{ ids: ['0423:000a', '0423:000c', '08d1:0001'] }];

export const net1080Rules: readonly DeviceRule[] = [{ ids: ['0525:1080', '06d0:0622'] }];

export const plusbRules: readonly DeviceRule[] = [
  { ids: ['067b:0000', '067b:0001', '067b:25a1', '050d:258a', '3923:7825', '067b:27a1'] },
];

export const gl620aRules: readonly DeviceRule[] = [{ ids: ['05e3:0502'] }];

export const cdcSubsetRules: readonly DeviceRule[] = [
  {
    ids: [
      '0402:5632',
      '182d:207c',
      '0547:2720',
      '0547:2727',
      '050d:0004',
      '056c:8100',
      '0525:9901',
      '0525:2888',
      '050f:0190',
      '049f:505a',
      '0e7e:1001',
      '8086:07d3',
      '1286:8001',
      '0525:a4a2',
    ],
  },
];

export const int51x1Rules: readonly DeviceRule[] = [{ ids: ['09e1:5121'] }];

export const hsoRules: readonly DeviceRule[] = [
  {
    ids: [
      '0af0:6711',
      '0af0:6731',
      '0af0:6751',
      '0af0:6771',
      '0af0:6791',
      '0af0:6811',
      '0af0:6911',
      '0af0:6951',
      '0af0:6971',
      '0af0:7011',
      '0af0:7031',
      '0af0:7051',
      '0af0:7071',
      '0af0:7111',
      '0af0:7211',
      '0af0:7251',
      '0af0:7271',
      '0af0:7311',
      '0af0:c031',
      '0af0:d013',
      '0af0:d031',
      '0af0:d033',
      '0af0:7301',
      '0af0:7361',
      '0af0:7381',
      '0af0:7401',
      '0af0:7501',
      '0af0:7601',
      '0af0:7701',
      '0af0:7706',
      '0af0:7801',
      '0af0:7901',
      '0af0:7a01',
      '0af0:7a05',
      '0af0:8200',
      '0af0:8201',
      '0af0:8300',
      '0af0:8302',
      '0af0:8304',
      '0af0:8400',
      '0af0:8600',
      '0af0:8800',
      '0af0:8900',
      '0af0:9000',
      '0af0:9200',
      '0af0:d035',
      '0af0:d055',
      '0af0:d155',
      '0af0:d255',
      '0af0:d057',
      '0af0:d157',
      '0af0:d257',
      '0af0:d357',
      '0af0:d058',
      '0af0:c100',
    ],
  },
];

export const kawethRules: readonly DeviceRule[] = [
  {
    ids: [
      '03e8:0008',
      '04bb:0901',
      '0506:03e8',
      '0506:11f8',
      '0557:2002',
      '0557:4000',
      '0565:0002',
      '0565:0003',
      '0565:0005',
      '05e9:0008',
      '05e9:0009',
      '066b:2202',
      '06e1:0008',
      '06e1:0009',
      '0707:0100',
      '07aa:0001',
      '07b8:4000',
      '07c9:b010',
      '0846:1001',
      '0846:1002',
      '085a:0008',
      '085a:0009',
      '087d:5704',
      '0951:0008',
      '095a:3003',
      '10bd:1427',
      '1342:0204',
      '13d2:0400',
      '1485:0001',
      '1485:0002',
      '1645:0005',
      '1645:0008',
      '1645:8005',
      '1668:0323',
      '2001:4000',
    ],
  },
];

export const pegasusRules: readonly DeviceRule[] = [
  // Bluetooth sticks bear the same number.
  { ids: ['050d:0121'], deviceClass: 0x00 },
  {
    ids: [
      '0506:4601',
      '0557:2007',
      '07b8:110c',
      '07b8:4104',
      '07b8:4004',
      '07b8:4007',
      '07b8:4102',
      '07b8:4002',
      '07b8:400b',
      '07b8:400c',
      '07b8:abc1',
      '07b8:200c',
      '083a:1046',
      '083a:5046',
      '083a:b004',
      '07a6:8511',
      '07a6:8513',
      '07a6:8515',
      '07a6:0986',
      '07a6:07c2',
      '3334:1701',
      '07c9:b100',
      '050d:0122',
      '08dd:0986',
      '08dd:0987',
      '049f:8511',
      '08dd:0988',
      '08dd:8511',
      '07aa:0004',
      '07aa:000d',
      '2001:4001',
      '2001:4002',
      '2001:4102',
      '2001:400b',
      '2001:200c',
      '2001:4003',
      '2001:abc1',
      '0db7:0002',
      '056e:4010',
      '1342:0304',
      '05cc:3000',
      '1044:8002',
      '0e66:400c',
      '03f0:811c',
      '04bb:0904',
      '04bb:0913',
      '04bb:093a',
      '0951:000a',
      '056e:4002',
      '056e:4005',
      '056e:400b',
      '056e:abc1',
      '056e:200c',
      '066b:2202',
      '066b:2203',
      '066b:2204',
      '066b:2206',
      '077b:08b4',
      '066b:400b',
      '066b:200c',
      '0411:0001',
      '0411:0005',
      '0411:0009',
      '045e:007a',
      '0846:1020',
      '0b39:0109',
      '0b39:0901',
      '08d1:0003',
      '0707:0200',
      '0707:0201',
      '15e8:9100',
      '15e8:9110',
      '067c:1001',
    ],
  },
];
