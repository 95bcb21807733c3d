import { Command as Program, CommanderError, Option } from 'commander';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exitCodes } from '../../base/errors.ts';
import { createEngine, type RunningEngine } from '../bootstrap.ts';
import { type HostReportFormat, hostReportFormats } from '../make-report.ts';
import { createPinoLog, logLevelOf } from '../pino-log.ts';
import { usbipPort } from '../../wire/usbip.ts';
import { version } from '../version.ts';
import type { Command, CommandContext } from './command.ts';
import { compare } from './compare.ts';
import { dqlReplay } from './dql-replay.ts';
import { doctor } from './doctor.ts';
import { describeFileFailure } from './files.ts';
import { identify } from './identify.ts';
import { Interruption } from './interruption.ts';
import { list } from './list.ts';
import { observe, type ObserveOptions } from './observe.ts';
import { createOutput, type Output, reportFailure } from './output.ts';
import { report } from './report.ts';
import { run } from './run.ts';
import {
  bitRate,
  byteCount,
  limitBytes,
  numberWithin,
  qdiscOption,
  type RunOptions,
  wholeNumber,
} from './run-options.ts';
import { serve } from './serve.ts';
import { serveUsbip, type ServeUsbipOptions } from './serve-usbip.ts';
import { sessions } from './sessions.ts';
import { simulate, type SimulateOptions } from './simulate.ts';

/**
 * The command line.
 * @param args without the program's own name
 * @returns the exit code (DESIGN section 4)
 */
export async function main(args: readonly string[]): Promise<number> {
  const output = createOutput(process);
  const log = createPinoLog(logLevelOf(process.env['QUEUESCOPE_LOG']));
  const scriptFolder = dirname(fileURLToPath(import.meta.url));
  const started: RunningEngine[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(started.map((running) => running.close()));
  };
  const interruption = new Interruption(process, {
    handleFault: (thrown) => void reportFailure(output, thrown),
    close,
  });
  const context: CommandContext = {
    output,
    log,
    interrupted: interruption.signal,
    rendererFolder: join(scriptFolder, '..', 'renderer'),
    engine: async (host) => {
      const recordingsFolder = process.env['QUEUESCOPE_RECORDINGS'];
      const running = await createEngine({
        host,
        log,
        scriptFolder,
        ...(recordingsFolder === undefined ? {} : { recordingsFolder }),
      });
      started.push(running);
      return running;
    },
  };

  const result = { exitCode: exitCodes.ok as number };
  try {
    await createProgram(context, (exitCode) => (result.exitCode = exitCode)).parseAsync([...args], {
      from: 'user',
    });
  } catch (error) {
    // Commander has told the user already.
    result.exitCode =
      error instanceof CommanderError ? commanderExitCode(error) : reportFailure(output, error);
  } finally {
    await close();
    interruption.dispose();
  }
  return exitCodeAfter(interruption, output, result.exitCode);
}

/** What became of the output decides too: a script must not take half of it for the whole. */
function exitCodeAfter(interruption: Interruption, output: Output, exitCode: number): number {
  const { readerGone, writeFailure } = interruption;
  if (writeFailure !== undefined) {
    return reportFailure(output, describeFileFailure('written', 'standard output', writeFailure));
  }
  return readerGone && exitCode === exitCodes.interrupted ? exitCodes.ok : exitCode;
}

function commanderExitCode(error: CommanderError): number {
  return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
}

/** A parser for commander: an option that may be given more than once. */
function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function createProgram(context: CommandContext, setExitCode: (exitCode: number) => void): Program {
  const program = new Program('queuescope')
    .description(
      'Drives USB modems and network adapters through usbnet with Byte Queue Limits, and shows what queues cost.',
    )
    .version(version)
    .exitOverride()
    .showHelpAfterError('See: npx queuescope help')
    .configureHelp({ sortSubcommands: false });
  const act = async <Options>(command: Command<Options>, options: Options): Promise<void> => {
    setExitCode(await command(context, options));
  };
  const json = new Option('--json', 'print JSON, and nothing else, on standard output').default(false);

  program
    .command('list')
    .description('show the devices there are')
    .option('--usbip <host>', 'and those of this USB/IP server; may be given more than once', collect, [])
    .addOption(json)
    .action((options: { usbip: string[]; json: boolean }) => act(list, options));

  program
    .command('identify')
    .argument('<file>', 'a listing of lsusb -v or usb-devices, or raw descriptors; "-" is standard input')
    .description('say what a device is from its descriptors, and which minidriver would drive it')
    .addOption(json)
    .action((file: string, options: { json: boolean }) => act(identify, { file, ...options }));

  program
    .command('run')
    .argument('<device>', 'its id: the first column of "npx queuescope list"')
    .description('drive a device, load it and measure')
    .option('--scenario <name or file>', 'what to do; instead of --bql, --duration and --idle')
    .addOption(
      new Option('--bql <mode>', 'BQL on, off, or first off and then on').choices(['on', 'off', 'ab']),
    )
    .option('--duration <seconds>', 'of the measurement (default: 10)', numberWithin(1, 86_400))
    .option('--idle <seconds>', 'part of it that is spent without load first', numberWithin(0, 3600))
    .option('--out <file.qscope>', 'record into this new file')
    .option('--configuration <number>', 'drive it in this USB configuration', wholeNumber(1, 255))
    .option('--tap <name>', 'Linux: give this host a network interface that uses the device')
    .option('--far-tap <name>', 'Linux, sim:…: an interface of this host at the far end of the link')
    .option('--far-netns <namespace>', 'with --far-tap: the network namespace that it is moved to')
    .option('--address <cidr>', 'set an address instead of asking by DHCP, like 10.9.0.2/24')
    .option('--gateway <ip>', 'with --address: the router')
    .option('--target <ip>', 'the host to ping and load (default: the gateway)')
    .option('--no-load', 'only ping')
    .option('--load-rate <bits/s>', 'UDP load, like 5M; 0: as fast as the queue takes it (default)', bitRate)
    .option('--load-payload <bytes>', 'UDP payload of a load packet (default: 1472)', wholeNumber(0, 1472))
    .option('--ping-interval <ms>', 'between two pings (default: 200)', wholeNumber(10, 60_000))
    .option('--max-data <bytes>', 'end the run before more is sent and received, like 200MB', byteCount)
    .option(
      '--qdisc <name>',
      'pfifo_fast (default), fq_codel or pfifo; fq_codel with options as tc takes them, in one argument',
      qdiscOption,
    )
    .option('--limit-min <bytes>', 'BQL limit_min', limitBytes)
    .option('--limit-max <bytes>', 'BQL limit_max, or "max"', limitBytes)
    .option('--hold-time <ms>', 'BQL hold_time (default: 1000)', wholeNumber(0, 60_000))
    .option('--sample-rate <hz>', 'samples a second (default: 20)', numberWithin(1, 100))
    .option(
      '--wait <seconds>',
      'if the device goes away, wait so long for it to come back (default: end)',
      numberWithin(0.1, 86_400),
    )
    .addOption(json)
    .action((device: string, options: Omit<RunOptions, 'device'>) => act(run, { ...options, device }));

  program
    .command('observe')
    .argument('<netdev>', 'a network interface, like eth0 or net:eth0')
    .description('watch an interface that the kernel keeps (Linux)')
    .addOption(
      new Option(
        '--bql <mode>',
        'BQL on, off (limit_min raised; needs root), or first off and then on',
      ).choices(['on', 'off', 'ab']),
    )
    .option('--duration <seconds>', 'of the measurement (default: 10)', numberWithin(1, 86_400))
    .option('--out <file.qscope>', 'record into this new file')
    .option('--target <ip>', 'the host to ping (default: the gateway through this interface)')
    .option('--ping-interval <ms>', 'between two pings (default: 200)', wholeNumber(10, 60_000))
    .option('--limit-min <bytes>', 'BQL limit_min, put back at the end; needs root', limitBytes)
    .option('--limit-max <bytes>', 'BQL limit_max, or "max"', limitBytes)
    .option('--hold-time <ms>', 'BQL hold_time', wholeNumber(0, 60_000))
    .option('--sample-rate <hz>', 'samples a second (default: 20)', numberWithin(1, 100))
    .addOption(json)
    .action((netdev: string, options: Omit<ObserveOptions, 'netdev'>) =>
      act(observe, { ...options, netdev }),
    );

  program
    .command('simulate')
    .description('run a scenario on a virtual device in virtual time')
    .requiredOption('--scenario <name or file>', 'what to do')
    .option('--max-data <bytes>', 'end the run before more is sent and received, like 200MB', byteCount)
    .addOption(json)
    .action((options: SimulateOptions) => act(simulate, options));

  program
    .command('sessions')
    .description('show the recordings in the library')
    .addOption(json)
    .action((options: { json: boolean }) => act(sessions, options));

  program
    .command('report')
    .argument('<file.qscope>', 'a recording')
    .description('make a report from a recording')
    .addOption(
      new Option('--format <format>', 'of the report').choices([...hostReportFormats]).default('html'),
    )
    .requiredOption('--out <file>', 'where to write it; "-" is standard output')
    .option('--show-ids', 'do not mask serial numbers and MAC addresses', false)
    .action((file: string, options: { format: HostReportFormat; out: string; showIds: boolean }) =>
      act(report, { file, ...options }),
    );

  program
    .command('compare')
    .argument('<a.qscope>', 'a recording')
    .argument('<b.qscope>', 'another one, of another day, firmware or device')
    .description('hold two recordings side by side')
    .addOption(json)
    .action((a: string, b: string, options: { json: boolean }) => act(compare, { a, b, ...options }));

  program
    .command('dql-replay')
    .argument('<file.jsonl>', 'a BQL trace')
    .description('replay a trace of BQL events through our DQL; one JSON line a completion')
    .action((file: string) => act(dqlReplay, { file }));

  program
    .command('doctor')
    .description('say what on this machine stops a device from being driven or observed, and what to do')
    .addOption(json)
    .action((options: { json: boolean }) => act(doctor, options));

  program
    .command('serve')
    .description('serve the app to a browser on this machine')
    .option('--port <port>', 'TCP port on 127.0.0.1 (default: any that is free)', wholeNumber(1, 65_535))
    .option('--open', 'open the page in the default browser, where there is one', false)
    .addOption(json)
    .action((options: { port?: number; open: boolean; json: boolean }) => act(serve, options));

  program
    .command('serve-usbip')
    .argument('[device...]', 'names of virtual devices (default: all)')
    .description('offer virtual devices over USB/IP, so that a kernel can drive them')
    .option('--port <port>', 'TCP port; 0: any that is free', wholeNumber(0, 65_535), usbipPort)
    .option('--host <address>', 'address to listen at', '127.0.0.1')
    .option('--far-tap <name>', 'Linux: an interface of this host at the far end of the link of one device')
    .option('--far-netns <namespace>', 'with --far-tap: the network namespace that it is moved to')
    .option('--fifo <bytes>', 'memory of the devices between USB and their link', wholeNumber(0, 1 << 20))
    .addOption(json)
    .action((devices: string[], options: Omit<ServeUsbipOptions, 'devices'>) =>
      act(serveUsbip, { devices, ...options }),
    );

  for (const command of program.commands) {
    command.showHelpAfterError(`See: npx queuescope help ${command.name()}`);
  }
  return program;
}
