import { describe, expect, test } from 'vitest';
import { findAltSetting, findDataEndpoints, findEndpoint } from '../../../src/usbnet/endpoints.ts';
import { altSetting, configuration, deviceDescriptor, endpoint } from './hand-made-device.ts';

const data = [0x0a, 0, 0] as const;

describe('the data endpoints: those of the first altsetting with bulk both ways (spec 2.3)', () => {
  test.each([
    ['in altsetting 1', [[], [endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)]], 1],
    ['in the only one', [[endpoint(0x81, 'bulk', 512), endpoint(0x02, 'bulk', 512)]], 0],
    [
      'not in one that has only one direction',
      [
        [endpoint(0x81, 'bulk', 512)],
        [endpoint(0x81, 'interrupt', 64), endpoint(0x02, 'bulk', 512)],
        [endpoint(0x02, 'bulk', 512), endpoint(0x81, 'bulk', 512)],
      ],
      2,
    ],
    [
      'not with an endpoint that has no packet size',
      [
        [endpoint(0x81, 'bulk', 0), endpoint(0x02, 'bulk', 512)],
        [endpoint(0x81, 'bulk', 64), endpoint(0x02, 'bulk', 64)],
      ],
      1,
    ],
  ])('%s', (_name, settings, expected) => {
    const described = configuration(settings.map((endpoints, i) => altSetting(1, i, data, endpoints)));
    const found = findDataEndpoints(described, 1);
    expect(found?.altSetting.alternateSetting).toBe(expected);
    expect([found?.bulkIn.address, found?.bulkOut.address]).toEqual([0x81, 0x02]);
  });

  test('the first of several, and the interrupt endpoint beside them', () => {
    const endpoints = [
      endpoint(0x01, 'bulk', 512),
      endpoint(0x85, 'interrupt', 8),
      endpoint(0x82, 'bulk', 512),
      endpoint(0x03, 'bulk', 512),
      endpoint(0x84, 'bulk', 512),
    ];
    const found = findDataEndpoints(configuration([altSetting(0, 0, data, endpoints)]), 0);
    expect([found?.bulkIn.address, found?.bulkOut.address, found?.interruptIn?.address]).toEqual([
      0x82, 0x01, 0x85,
    ]);
  });

  test('none, where there are none', () => {
    expect(findDataEndpoints(configuration([altSetting(1, 0, data)]), 1)).toBeUndefined();
    expect(findDataEndpoints(configuration([]), 1)).toBeUndefined();
  });
});

test('altsettings and endpoints are found by their numbers', () => {
  const described = configuration([
    altSetting(3, 0, data),
    altSetting(3, 1, data, [endpoint(0x81, 'bulk', 512)]),
  ]);
  expect(findAltSetting(described, 3, 1)?.endpoints).toHaveLength(1);
  expect(findAltSetting(described, 3, 2)).toBeUndefined();
  expect(findAltSetting(described, 2, 0)).toBeUndefined();
  const device = { speed: 'high', descriptor: deviceDescriptor, configuration: described } as const;
  expect(findEndpoint(device, 0x81)?.maxPacketSize).toBe(512);
  expect(findEndpoint(device, 0x82)).toBeUndefined();
});
