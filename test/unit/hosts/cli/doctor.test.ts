import { describe, expect, test } from 'vitest';
import { doctorDocument, doctorLines } from '../../../../src/hosts/cli/doctor.ts';
import { wrapText } from '../../../../src/hosts/cli/word-wrap.ts';
import { examine } from '../../../../src/hosts/doctor/examine.ts';
import { denied, linuxMachine, modem, netdev, node, otherMachine } from '../doctor/fake-machine.ts';

const rule = 'SUBSYSTEM=="usb", ATTR{idVendor}=="12d1", ATTR{idProduct}=="1506", MODE="0660", TAG+="uaccess"';
/** Nearly everything is wrong with them. */
const bad = {
  container: linuxMachine(
    {
      surroundings: 'container',
      kernelRelease: '6.12.48+deb13-amd64',
      isRoot: false,
      nodeVersion: '18.0.0',
      devices: [
        modem([denied], { name: 'A modem whose maker could not stop naming it once he had begun to' }),
      ],
    },
    {
      hasUsbNodes: false,
      usbNodes: new Map([
        ['usb:1-1', node({ holders: [{ pid: 1234567, command: 'ModemManager' }], powerControl: 'auto' })],
      ]),
      usbMemoryMegabytes: 1,
      running: new Set(['ModemManager', 'NetworkManager']),
      netdevs: [netdev({ bqlQueues: [] }, { hasDefaultRoute: true, limitsAreWritable: false })],
      programs: new Set(['ping']),
      ping: { isIputils: true, complaint: 'ping: Operation not permitted', groupRange: '1 0' },
    },
  ),
  'no USB': linuxMachine({ surroundings: 'wsl', devices: [] }, { usbDevices: undefined, hasUsbNodes: false }),
  macOS: otherMachine('darwin'),
  Windows: otherMachine('win32'),
};

describe('for people', () => {
  test.each(Object.entries(bad))(
    '%s: it fits 100 columns, and every command can be copied',
    (_name, machine) => {
      const checks = examine(machine);
      const lines = doctorLines(checks);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
      const shown = new Set(lines.map((line) => line.trim()));
      const commands = checks
        .flatMap(({ remedy }) => remedy?.split('\n') ?? [])
        .filter((line) =>
          /^(?:sudo|echo|docker|npx|nmcli|udevadm|usbipd|SUBSYSTEM|chmod|export|nvm) ?/.test(line),
        );
      for (const command of commands) expect(shown).toContain(command);
    },
  );

  test('groups, findings, what to do, and the sum of it', () => {
    const lines = doctorLines(examine(linuxMachine({ devices: [modem([denied])] })));
    expect(lines[0]).toBe('Queuescope itself');
    expect(lines).toContain('Driving a USB device');
    expect(lines).toContain('  ok       Node 22.11.0 is new enough.');
    expect(lines).toContain(`      ${rule}`);
    expect(lines.at(-1)).toMatch(/^1 problem to solve first\. \d check/);
    expect(doctorLines(examine(linuxMachine())).at(-1)).toMatch(/^All is well\./);
    expect(doctorLines(examine(linuxMachine({ kernelRelease: '6.1.0' }))).at(-1)).toMatch(
      /^Nothing stops a device from being driven or observed; 1 warning\./,
    );
  });

  test('a name cannot pass for a finding of ours', () => {
    const devices = [modem([], { name: 'x\n  ok       forged' })];
    const lines = doctorLines(examine(linuxMachine({ devices }))).filter((line) => line.includes('forged'));
    expect(lines).toEqual(['  ok       usb:1-1 x ok forged (12d1:1506): huawei_cdc_ncm drives it.']);
  });
});

test('for programs: one document with all findings, also those that do not apply', () => {
  const machine = otherMachine('win32');
  const checks = examine(machine);
  const document = JSON.parse(JSON.stringify(doctorDocument(machine, checks))) as { checks: object[] };
  expect(document).toMatchObject({ platform: 'win32', state: 'warning', exitCode: 0 });
  expect(document.checks).toHaveLength(checks.length);
  expect(document.checks[0]).toEqual({
    id: 'node-version',
    group: 'program',
    subject: null,
    state: 'ok',
    message: 'Node 22.11.0 is new enough.',
    remedy: null,
    kind: null,
  });
});

describe('a text in lines', () => {
  test.each([
    ['a bb ccc', 6, ['- a bb', '  ccc']],
    ['a bb ccc', 5, ['- a', '  bb', '  ccc']],
    ['unbreakable', 4, ['- unbreakable']],
    ['', 9, ['- ']],
    ['a  b', 9, ['- a  b']],
  ])('%j in %d columns', (text, columns, expected) => {
    expect(wrapText(text, columns, { first: '- ', rest: '  ' })).toEqual(expected);
  });
});
