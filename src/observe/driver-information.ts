import { runProgram, type StartProgram } from './line-program.ts';

/** What a driver says of itself (ETHTOOL_GDRVINFO); what it leaves empty is undefined. */
export interface DriverInformation {
  readonly driver: string | undefined;
  readonly version: string | undefined;
  readonly firmwareVersion: string | undefined;
}

/** Some drivers ask their device for it. */
const limitMs = 3000;
const nothing = /^(?:n\/a)?$/i;

/** Asks `ethtool`; undefined where it is not installed, or does not answer. */
export async function readDriverInformation(
  start: StartProgram,
  netdev: string,
): Promise<DriverInformation | undefined> {
  const { exitCode, lines } = await runProgram(start, 'ethtool', ['-i', netdev], limitMs);
  return exitCode === 0 ? parseDriverInformation(lines) : undefined;
}

/** Reads the lines of `ethtool -i`: "firmware-version: 1.2". */
export function parseDriverInformation(lines: readonly string[]): DriverInformation {
  const find = (name: string): string | undefined => {
    const line = lines.find((candidate) => candidate.startsWith(`${name}:`));
    const value = line?.slice(name.length + 1).trim() ?? '';
    return nothing.test(value) ? undefined : value;
  };
  return {
    driver: find('driver'),
    version: find('version'),
    firmwareVersion: find('firmware-version'),
  };
}
