import type { Check } from './check.ts';
import {
  checkAutosuspend,
  checkKernel,
  checkNetdevs,
  checkNetworkManager,
  checkPing,
  checkSetLimits,
  checkTc,
} from './check-observe.ts';
import { checkNode, checkPriority, checkRecordings } from './check-program.ts';
import { checkTap, checkTool } from './check-tap.ts';
import {
  checkDevices,
  checkDriver,
  checkHolders,
  checkLibrary,
  checkMemory,
  checkModemManager,
  checkNodes,
  checkOwnNetwork,
} from './check-usb.ts';
import type { Machine } from './machine.ts';

/** Every check, in the order in which they are shown; each id is there at least once, whatever the machine. */
export function examine(machine: Machine): readonly Check[] {
  return [
    checkNode(machine),
    checkRecordings(machine),
    checkLibrary(machine),
    checkNodes(machine),
    ...checkDevices(machine),
    ...checkHolders(machine),
    checkDriver(machine),
    checkMemory(machine),
    checkPriority(machine),
    checkModemManager(machine),
    checkOwnNetwork(machine),
    checkKernel(machine),
    ...checkNetdevs(machine),
    ...checkAutosuspend(machine),
    checkSetLimits(machine),
    checkPing(machine),
    checkTc(machine),
    checkTap(machine),
    checkTool('ip', machine),
    checkNetworkManager(machine),
    checkTool('iperf3', machine),
    checkTool('irtt', machine),
  ];
}
