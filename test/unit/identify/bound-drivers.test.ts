import { describe, expect, test } from 'vitest';
import { devicesOf, identifyText, idOf } from './descriptor-fixtures.ts';

/** What people post instead of descriptors. */

function functionsOf(text: string): unknown {
  return devicesOf(text).map((device) => [
    idOf(device),
    device.functions.map(({ linuxDriver, configuration, interfaces }) => [
      linuxDriver,
      configuration,
      interfaces,
    ]),
  ]);
}

const tree = `/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 480M
    |__ Port 3: Dev 7, If 0, Class=Vendor Specific Class, Driver=option, 480M
    |__ Port 3: Dev 7, If 3, Class=Communications, Driver=cdc_ncm, 480M
    |__ Port 3: Dev 7, If 4, Class=CDC Data, Driver=cdc_ncm, 480M
`;

describe('the tree of lsusb -t', () => {
  test('has no ids, but drivers', () => {
    expect(functionsOf(tree)).toEqual([[null, [['cdc_ncm', 1, [3, 4]]]]]);
  });

  test('has its ids from the list beside it, by bus and number', () => {
    const list = 'Bus 002 Device 007: ID 1d6b:0002\nBus 001 Device 007: ID 2c7c:0900 Quectel RG500U\n';
    expect(functionsOf(list + tree)).toContainEqual(['2c7c:0900', [['cdc_ncm', 1, [3, 4]]]]);
  });

  test('tells nothing where descriptors do', () => {
    const listing =
      'P: Vendor=2c7c ProdID=0900\nC:* #Ifs= 1 Cfg#= 1\nI:* If#= 0 Alt= 0 #EPs= 2 Cls=ff Sub=00 Prot=00\n';
    expect(functionsOf(tree + listing)).toEqual([['2c7c:0900', []]]);
  });
});

describe("the kernel's log", () => {
  const found = '[    1.0] usb 1-1.4: New USB device found, idVendor=12d1, idProduct=14dc, bcdDevice= 1.02\n';

  test('has configuration and interface with the driver', () => {
    const bound = "[    2.0] cdc_ether 1-1.4:1.0 eth1: register 'cdc_ether' at usb-ehci-platform.0-1.4\n";
    expect(functionsOf(found + bound)).toEqual([['12d1:14dc', [['cdc_ether', 1, [0, 1]]]]]);
    expect(devicesOf(found + bound)[0]?.complete).toBe(false);
  });

  test('a device that comes again is told once, with what was known of it', () => {
    const bound = "[    2.0] cdc_ether 1-1.4:1.0 eth1: register 'cdc_ether' at usb-1.4\n";
    expect(functionsOf(found + bound + found + bound + found)).toEqual([
      ['12d1:14dc', [['cdc_ether', 1, [0, 1]]]],
    ]);
  });

  test('a driver that failed has nothing', () => {
    const failed = '[    2.0] qmi_wwan 1-1.4:1.4: probe with driver qmi_wwan failed with error -22\n';
    expect(functionsOf(found + failed)).toEqual([['12d1:14dc', []]]);
  });
});

test('what stopped it is the line that looks like a listing, not the letter around it', () => {
  const result = identifyText('Dear all,\n\nmy modem is broken:\nBus 001 Device 004, ID 12d1 only\nMfG\n');
  expect(result).toMatchObject({ ok: false, position: 4 });
});
