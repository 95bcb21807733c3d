import { describe, expect, test } from 'vitest';
import { chooseConfiguration } from '../../../src/minidrivers/configuration-choice.ts';
import { altSetting, configuration, deviceDescriptor } from '../usbnet/hand-made-device.ts';

type Triple = readonly [number, number, number];

const vendor: Triple = [0xff, 0xff, 0x00];
const ecm: Triple = [0x02, 0x06, 0x00];
const ncm: Triple = [0x02, 0x0d, 0x00];
const rndis: Triple = [0x02, 0x02, 0xff];
const activeSync: Triple = [0xef, 0x01, 0x01];
const androidRndis: Triple = [0xe0, 0x01, 0x03];
const storage: Triple = [0x08, 0x06, 0x50];
const audio1: Triple = [0x01, 0x01, 0x00];
const audio3: Triple = [0x01, 0x01, 0x30];

/** The value of the configuration that is chosen of configurations 1, 2, … that begin with these interfaces. */
function choose(
  firsts: readonly (Triple | undefined)[],
  ids: { readonly vendorId?: number; readonly productId?: number; readonly deviceClass?: number } = {},
): number | undefined {
  const configurations = firsts.map((triple, i) =>
    configuration(triple === undefined ? [] : [altSetting(0, 0, triple)], { value: i + 1 }),
  );
  const descriptor = { ...deviceDescriptor, deviceClass: 0, ...ids };
  return chooseConfiguration({ descriptor, configurations })?.value;
}

describe('the configuration that Linux sets', () => {
  test.each<[string, readonly (Triple | undefined)[], number | undefined]>([
    ['none of none', [], undefined],
    ['the only one, whatever it is', [vendor], 1],
    ['RNDIS, if it is all there is', [rndis], 1],
    ['the first that does not begin vendor-specific', [vendor, ncm, ecm], 2],
    ['the first, if all are vendor-specific', [vendor, vendor], 1],
    ['not RNDIS, if another one is for everybody', [rndis, ecm], 2],
    ['not ActiveSync either', [activeSync, ecm], 2],
    ['RNDIS before a vendor-specific one', [rndis, vendor], 1],
    ['RNDIS that does not come first', [storage, rndis], 1],
    ['RNDIS as Android has it is no exception', [androidRndis, ecm], 1],
    ['one without interfaces only for want of another', [undefined, storage], 2],
    ['one without interfaces', [undefined], 1],
    ['audio: the first', [audio1, ecm], 2],
    ['audio alone', [audio1, audio1], 1],
    ['audio class 3 before 1', [audio1, audio3], 2],
  ])('%s', (_name, firsts, chosen) => {
    expect(choose(firsts)).toBe(chosen);
  });

  test('the first, if the device as a whole is vendor-specific', () => {
    expect(choose([vendor, ncm], { deviceClass: 0xff })).toBe(1);
  });

  test.each([
    ['r8152', 0x0bda, 0x8156],
    ['r8152 in a dock', 0x17ef, 0x3082],
    ['aqc111', 0x0b95, 0x2790],
  ])('%s: the vendor’s own, wherever it is', (_name, vendorId, productId) => {
    expect(choose([vendor, ncm, ecm], { vendorId, productId })).toBe(1);
    expect(choose([ncm, vendor], { vendorId, productId })).toBe(2);
    expect(choose([ncm, ecm], { vendorId, productId })).toBe(1);
  });
});
