/**
 * The laboratory itself, with nothing of Queuescope in it: what the other tests in this folder build on is there, and a
 * guest that goes wrong is told from one that ends well.
 */
import { createServer } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { bootGuest, type GuestRun } from './guest.ts';

/** Opens a server on this machine that answers each line with "host: " and the line. */
async function withLineServer<Result>(use: (port: number) => Promise<Result>): Promise<Result> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.setEncoding('utf8').on('data', (text: string) => socket.write(`host: ${text}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  try {
    return await use(typeof address === 'object' && address !== null ? address.port : 0);
  } finally {
    server.close();
  }
}

describe('a guest with stock parts', () => {
  let guest: GuestRun;
  beforeAll(async () => {
    guest = await withLineServer((port) =>
      bootGuest({
        name: 'laboratory',
        scriptFile: new URL('laboratory.guest.sh', import.meta.url),
        files: { 'host-port': String(port) },
        network: true,
        qemuArguments: [
          '-netdev',
          'user,id=link,net=10.0.3.0/24',
          '-device',
          'usb-net,bus=xhci.0,netdev=link',
        ],
        limitSeconds: 300,
      }),
    );
  }, 400_000);

  test('runs a kernel that has BQL in usbnet, with every module that is needed', () => {
    const [major = 0, minor = 0] = guest.scenario('kernel').fact('version').split('.').map(Number);
    expect(major * 1000 + minor).toBeGreaterThanOrEqual(6019);
  });

  test('has the node that runs this test', () => {
    expect(guest.scenario('kernel').fact('node')).toBe(process.version);
  });

  test("has a clock that runs as fast as this machine's", () => {
    expect(guest.clockRatio).toBeGreaterThan(0.98);
    expect(guest.clockRatio).toBeLessThan(1.02);
  });

  test('comes to its end', () => {
    expect(guest.failure).toBe('');
    expect(guest.exitCode).toBe(0);
    const times = `boot ${guest.bootSeconds.toFixed(1)} s, ${guest.seconds.toFixed(1)} s in all`;
    process.stdout.write(`${times}\n${guest.output}`);
  });

  test.each([
    { name: 'ncm-super', driver: 'cdc_ncm', speedMbit: 5000 },
    { name: 'ecm-high', driver: 'cdc_ether', speedMbit: 480 },
    { name: 'rndis-high', driver: 'rndis_host', speedMbit: 480 },
    { name: 'eem-full', driver: 'cdc_eem', speedMbit: 12 },
  ])('$name: the kernel drives it with BQL, the usb package sees it', ({ name, driver, speedMbit }) => {
    const scenario = guest.scenario(name);
    expect(scenario.fact('driver')).toBe(driver);
    expect(scenario.number('speed')).toBe(speedMbit);
    expect(scenario.fact('node')).toBe('character special file');
    expect(scenario.fact('usbPackage')).toBe('yes');
    expect(scenario.number('limitBytes')).toBeGreaterThan(0);
    // The far end's own count of the 300 datagrams, and its sink's.
    expect(scenario.number('farDatagrams') + scenario.number('farOverflows')).toBe(300);
    expect(scenario.json('sink.json')).toMatchObject({ datagrams: scenario.number('farDatagrams') });
  });

  test("QEMU's usb-net in its ECM configuration reaches QEMU's user network", () => {
    const scenario = guest.scenario('qemu-usb-net');
    expect(scenario.fact('driver')).toBe('cdc_ether');
    expect(scenario.number('speed')).toBe(12);
    expect(scenario.log).toContain('bytes from 10.0.3.2');
  });

  test('a DHCP server at the far end hands out addresses', () => {
    expect(guest.scenario('dhcp').text('udhcpc.txt')).toMatch(/lease of 10\.9\.0\.2\d obtained/);
  });

  test('a cable is pulled and put back', () => {
    const scenario = guest.scenario('unplugged');
    expect(scenario.fact('gone')).toBe('yes');
    expect(scenario.fact('driver')).toBe('cdc_ncm');
  });

  test('iperf3 measures, and usbnet can be traced meanwhile', () => {
    const scenario = guest.scenario('measured');
    const result = scenario.json('iperf3.json') as { end: { sum_received: { bits_per_second: number } } };
    expect(result.end.sum_received.bits_per_second).toBeGreaterThan(1e6);
    expect(scenario.number('completions')).toBeGreaterThan(10);
  });

  test("Debian's usbipd exports a device and the kernel attaches it", () => {
    const scenario = guest.scenario('usbip');
    expect(scenario.text('list.txt')).toContain('1d6b:0103');
    expect(scenario.fact('netdev')).toContain('vhci_hcd');
  });

  test('reaches a server on this machine', () => {
    expect(guest.scenario('network').fact('answer')).toBe('host: from the guest');
  });

  test('makes TAP interfaces', () => {
    expect(guest.scenario('tap').fact('driver')).toBe('tun');
  });
});

describe('a guest that goes wrong', () => {
  test('a scenario and a script that hang are stopped, and the results before are kept', async () => {
    const guest = await bootGuest({
      name: 'hanging',
      scriptFile: new URL('hanging.guest.sh', import.meta.url),
      limitSeconds: 35,
    });
    expect(guest.exitCode).toBe(124);
    expect(guest.scenario('good').fact('kept')).toBe('a value, "quoted" and all');
    expect(() => guest.scenario('hanging')).toThrow(/Scenario hanging ran into its deadline.*sleep 600/s);
    expect(() => guest.scenario('failing')).toThrow(
      /Scenario failing failed with exit code 1.*failed: false/s,
    );
    expect(() => guest.scenario('never')).toThrow(/Scenario never did not come to its end/);
    expect(() => guest.scenario('good').fact('absent')).toThrow('left no fact absent');
  }, 120_000);

  test('a kernel that dies is told with the last words of its console', async () => {
    const guest = await bootGuest({
      name: 'crashing',
      scriptFile: new URL('crashing.guest.sh', import.meta.url),
      limitSeconds: 60,
    });
    expect(guest.exitCode).toBeUndefined();
    expect(guest.failure).toContain('sysrq triggered crash');
    expect(guest.scenario('good').fact('kept')).toBe('before the crash');
    expect(() => guest.scenario('crash')).toThrow('sysrq triggered crash');
  }, 120_000);
});
