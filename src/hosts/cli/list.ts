import { errorTable, exitCodes } from '../../base/errors.ts';
import type { Device } from '../../contract/device.ts';
import { formatUsbId } from '../../minidrivers/described-device.ts';
import type { Command } from './command.ts';
import { type Output, table } from './output.ts';

export interface ListOptions {
  /** USB/IP servers whose devices are wanted, too. */
  readonly usbip: readonly string[];
  readonly json: boolean;
}

/**
 * `queuescope list`: every device there is, and what could be done with it. A server that does not answer is told on
 * standard error, and in the exit code.
 */
export const list: Command<ListOptions> = async (context, { usbip, json }) => {
  const { output } = context;
  const { engine } = await context.engine('cli');
  for (const server of usbip) engine.addServer(server);
  const devices = await engine.devices();
  if (json) output.json(devices);
  else printDevices(output, devices);
  const [failure] = engine.servers.flatMap((server) => server.failure ?? []);
  for (const { problem } of engine.servers) {
    if (problem === undefined) continue;
    output.note(`queuescope: ${problem.message}`);
    if (problem.remedy !== undefined) output.note(problem.remedy);
  }
  return failure === undefined ? exitCodes.ok : errorTable[failure.kind].exitCode;
};

function printDevices(output: Output, devices: readonly Device[]): void {
  if (devices.length > 0) {
    output.line(table([['DEVICE', 'USB ID', 'SPEED', 'DRIVER', 'STATE', 'NAME'], ...devices.map(row)]));
  }
  if (!devices.some((device) => device.mode === 'drive')) {
    output.note('No USB network device is plugged in. The virtual ones work like real ones.');
  }
  for (const device of devices) {
    for (const problem of device.problems) {
      output.note(`\n${device.id}: ${problem.message}`);
      if (problem.remedy !== undefined) output.note(problem.remedy);
    }
  }
}

function row(device: Device): readonly string[] {
  const id =
    device.vendorId === undefined || device.productId === undefined
      ? ''
      : formatUsbId(device.vendorId, device.productId);
  const driver = device.minidriver ?? device.kernelDriver ?? '–';
  return [device.id, id, device.speed, driver, device.state, device.name];
}
