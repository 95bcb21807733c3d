/** What goes wrong in the field while `queuescope run` has a device: a clear exit code, and nothing recorded is lost. */
import { beforeAll, expect, test } from 'vitest';
import { bootGuest, type GuestRun } from './guest.ts';
import { reportOf } from './report-of.ts';
import { readRun } from './run-output.ts';

/** Exit codes as DESIGN section 4 lists them; scripts depend on them. */
const exitCodes = { noSuchDevice: 3, accessDenied: 4, deviceFailed: 5, interrupted: 130, killed: 137 };
/** What a run that dies may lose. */
const lostUs = 1_000_000;

let guest: GuestRun;

beforeAll(async () => {
  guest = await bootGuest({
    name: 'faults',
    program: true,
    scriptFile: new URL('faults.guest.sh', import.meta.url),
    limitSeconds: 540,
  });
}, 700_000);

test('a device that is not there', () => {
  expect(guest.scenario('no-such-device').number('run')).toBe(exitCodes.noSuchDevice);
});

test('unplugged under load: the run ends, the recording is whole, the device comes back', async () => {
  const scenario = guest.scenario('unplugged');
  expect(scenario.number('loaded')).toBe(exitCodes.deviceFailed);
  const { events, lastSampleUs } = readRun(scenario, 'loaded.jsonl');
  expect(events.map((event) => event['kind'])).toContain('unplug');
  expect(scenario.fact('integrity')).toBe('ok');
  expect(scenario.number('recordedLastUs')).toBeGreaterThanOrEqual(Math.floor(lastSampleUs));
  expect(JSON.parse(await reportOf(scenario, 'loaded.qscope', 'json'))).toBeTypeOf('object');
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});

test('two programs on one device: the second is told, the first goes on', () => {
  const scenario = guest.scenario('two-programs');
  expect(scenario.number('second')).toBe(exitCodes.accessDenied);
  expect(scenario.text('second.err')).toMatch(/in use/i);
  expect(scenario.json('doctor.json')).toMatchObject({
    exitCode: 0,
    checks: expect.arrayContaining([
      expect.objectContaining({ id: 'usb-holders', message: expect.stringMatching(/in use by node/) }),
    ]),
  });
  expect(scenario.number('first')).toBe(exitCodes.interrupted);
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});

test('no permission: what would help is printed, the udev rule where udev runs', () => {
  const scenario = guest.scenario('no-permission');
  expect(scenario.number('without-udev')).toBe(exitCodes.accessDenied);
  expect(scenario.text('without-udev.err')).toMatch(/^chmod a\+rw \/dev\/bus\/usb\/\d+\/\d+$/m);
  expect(scenario.number('with-udev')).toBe(exitCodes.accessDenied);
  expect(scenario.text('with-udev.err')).toMatch(/ATTR\{idVendor\}=="1d6b"/);
  // Doctor says the same before anything is tried.
  expect(scenario.number('without-udev-doctor')).toBe(exitCodes.accessDenied);
  expect(scenario.text('without-udev-doctor.txt')).toMatch(/^ +chmod a\+rw \/dev\/bus\/usb\/\d+\/\d+$/m);
  expect(scenario.number('with-udev-doctor')).toBe(exitCodes.accessDenied);
  expect(scenario.text('with-udev-doctor.txt')).toMatch(
    /^ +SUBSYSTEM.*ATTR\{idVendor\}=="1d6b".*"uaccess"$/m,
  );
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});

test('killed: the file keeps all but the last second, and the kernel can have the device back', () => {
  const scenario = guest.scenario('killed');
  expect(scenario.number('loaded')).toBe(exitCodes.killed);
  expect(scenario.fact('integrity')).toBe('ok');
  const { lastSampleUs } = readRun(scenario, 'loaded.jsonl');
  expect(lastSampleUs).toBeGreaterThan(lostUs);
  expect(scenario.number('recordedLastUs')).toBeGreaterThanOrEqual(lastSampleUs - lostUs);
  expect(scenario.fact('driverAfter')).toBe('cdc_ncm');
});
