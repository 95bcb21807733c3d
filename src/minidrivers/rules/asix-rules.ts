import type { DeviceRule } from '../device-rule.ts';

/** asix' table by chip (Linux 7.3, spec 3.8): ids alone, whatever the class. */
export const asixRules: readonly DeviceRule[] = [
  {
    chip: 'AX88172',
    ids: [
      '077b:2226',
      '0846:1040',
      '2001:1a00',
      '0b95:1720',
      '07b8:420a',
      '08dd:90ff',
      '0557:2009',
      '0411:003d',
      '6189:182d',
      '07aa:0017',
      '1189:0893',
      '1631:6200',
      '04f1:3008',
    ],
  },
  {
    chip: 'AX88178',
    ids: [
      '08dd:0114',
      '0411:006e',
      '0df6:0056',
      '0df6:061c',
      '0b95:1780',
      '0789:0160',
      '1737:0039',
      '04bb:0930',
      '050d:5055',
      '14ea:ab11',
      '1d2a:0801',
    ],
  },
  {
    chip: 'AX88772',
    ids: [
      '0b95:7720',
      '13b1:0018',
      '1557:7720',
      '07d1:3c05',
      '2001:3c05',
      '2001:1a02',
      '05ac:1402',
      '0b95:772a',
      '0db0:a877',
    ],
  },
  { chip: 'AX88772B', ids: ['17ef:7203', '0b95:772b', '0b95:7e2b', '066b:20f9', '33f7:0004'] },
  { chip: 'AX88172A', ids: ['0b95:172a'] },
];
