// Prints "yes" where the package `usb` of this checkout sees the device at a bus position such as 1-1, else "no".
const { getDeviceList } = require('usb');

const position = process.argv[2];
const positions = getDeviceList().map(
  (device) => `${device.busNumber}-${(device.portNumbers ?? []).join('.')}`,
);
console.log(positions.includes(position) ? 'yes' : 'no');
