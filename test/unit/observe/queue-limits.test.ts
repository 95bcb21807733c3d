import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultJournalFolder, LimitsJournal } from '../../../src/observe/limits-journal.ts';
import { NetdevFiles } from '../../../src/observe/netdev-files.ts';
import { findLeftLimits, QueueLimits, restoreLeftLimits } from '../../../src/observe/queue-limits.ts';
import { FakeNetdevs, type FakeNetdevOptions } from './fake-netdevs.ts';

const maxLimit = 1_879_048_192;
const usb = { path: 'usb1/1-1/1-1:1.0', driver: 'cdc_ncm', bus: 'usb' };

let system: FakeNetdevs;
let files: NetdevFiles;
let journal: LimitsJournal;

beforeEach(() => {
  system = new FakeNetdevs();
  files = new NetdevFiles(system.root);
  journal = new LimitsJournal(join(system.root, 'run/queuescope'));
});
afterEach(() => system.dispose());

async function open(options: FakeNetdevOptions = { device: usb }): Promise<QueueLimits> {
  if (!existsSync(join(system.root, 'sys/class/net/usb0'))) system.add('usb0', options);
  const netdev = await files.describe('usb0');
  if (netdev === undefined) throw new Error('usb0 is there');
  return new QueueLimits(files, journal, netdev);
}

const limitsOf = (queue = 0): readonly number[] =>
  ['limit_min', 'limit_max', 'hold_time', 'limit'].map((file) => system.getLimit('usb0', file, queue));

function journalNames(): string[] {
  const folder = join(system.root, 'run/queuescope');
  return existsSync(folder) ? readdirSync(folder) : [];
}

describe('settings', () => {
  test('are set on all queues, and each queue gets its own back', async () => {
    system.add('usb0', { queues: 2, device: usb });
    system.setLimit('usb0', 'limit_min', 1000, 1);
    const limits = await open();
    expect(limits.isUniform).toBe(false);
    expect(limits.set({ limitMinBytes: 3000, limitMaxBytes: 9000, holdTimeMs: 200 })).toBeUndefined();
    expect([limitsOf(0), limitsOf(1)]).toEqual([
      [3000, 9000, 200, 0],
      [3000, 9000, 200, 0],
    ]);
    expect(limits.settings).toEqual({ limitMinBytes: 3000, limitMaxBytes: 9000, holdTimeMs: 200 });
    expect(limits.isUniform).toBe(true);
    expect(limits.restore()).toEqual([]);
    expect([limitsOf(0), limitsOf(1)]).toEqual([
      [0, maxLimit, 1000, 0],
      [1000, maxLimit, 1000, 0],
    ]);
  });

  test('are within what the kernel takes, or nothing is written', async () => {
    const limits = await open();
    for (const limitMinBytes of [-1, maxLimit + 1, 1.5, Number.NaN]) {
      expect(limits.set({ limitMinBytes })?.kind).toBe('invalid');
    }
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 0]);
    expect(limits.set({ limitMinBytes: maxLimit })).toBeUndefined();
    expect(system.getLimit('usb0', 'limit_min')).toBe(maxLimit);
    limits.restore();
  });

  test('of another program are noticed, and kept when ours are put back', async () => {
    const limits = await open();
    expect(limits.refresh()).toBeUndefined();
    system.setLimit('usb0', 'limit_min', 4000);
    expect(limits.refresh()).toMatchObject({ limitMinBytes: 4000 });
    limits.set({ holdTimeMs: 10 });
    limits.restore();
    expect(limitsOf()).toEqual([4000, maxLimit, 1000, 0]);
  });
});

describe('BQL off', () => {
  test('is a limit_min above all that a USB driver takes; on again, its limit is where it was', async () => {
    const limits = await open();
    system.setLimit('usb0', 'limit', 3028);
    expect(limits.setEnabled(false)).toBeUndefined();
    expect(limits.isEnabled).toBe(false);
    expect(system.getLimit('usb0', 'limit_min')).toBeGreaterThan(455_400);
    // What the kernel does with the next completion.
    system.setLimit('usb0', 'limit', system.getLimit('usb0', 'limit_min'));
    // To whoever looks at the settings, they are those that will be in force.
    expect(limits.settings.limitMinBytes).toBe(0);
    expect(limits.refresh()).toBeUndefined();
    expect(limits.setEnabled(true)).toBeUndefined();
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 3028]);
    expect(journalNames()).toEqual([]);
  });

  test('raises a limit_max that would win over it', async () => {
    const limits = await open();
    limits.set({ limitMaxBytes: 6000 });
    limits.setEnabled(false);
    expect(limitsOf()[0]).toBe(limitsOf()[1]);
    limits.setEnabled(true);
    expect(limitsOf()).toEqual([0, 6000, 1000, 0]);
    limits.restore();
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 0]);
  });

  test('keeps what is set meanwhile for when it is on again', async () => {
    const limits = await open();
    limits.setEnabled(false);
    const off = limitsOf()[0];
    limits.set({ limitMinBytes: 2000, holdTimeMs: 50 });
    expect(limitsOf()).toEqual([off, maxLimit, 50, 0]);
    limits.setEnabled(true);
    expect(limitsOf()).toEqual([2000, maxLimit, 50, 0]);
    limits.restore();
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 0]);
  });

  test('ends with the session, whichever state it is in', async () => {
    const limits = await open();
    system.setLimit('usb0', 'limit', 3028);
    limits.setEnabled(false);
    system.setLimit('usb0', 'limit', 500_000);
    expect(limits.restore()).toEqual([]);
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 3028]);
    expect(limits.isEnabled).toBe(true);
  });

  // What usbnet lets on its way (spec 2.2), and a little more: a longer queue would take away from the qdisc.
  test.each([
    ['12', 4 * 16_384],
    ['480', 91_080],
    ['5000', 455_400],
    ['10000', 455_400],
  ])('is just above what usbnet takes at %s Mbit/s', async (speedMbit, queueBytes) => {
    system.write('sys/devices/usb1/1-1/idVendor', '2c7c');
    system.write('sys/devices/usb1/1-1/idProduct', '0801');
    system.write('sys/devices/usb1/1-1/speed', speedMbit);
    const limits = await open();
    limits.setEnabled(false);
    const off = system.getLimit('usb0', 'limit_min');
    expect(off).toBeGreaterThanOrEqual(queueBytes);
    expect(off).toBeLessThan(queueBytes + 1514);
    limits.restore();
  });

  test('is more for adapters with longer rings', async () => {
    const limits = await open({ device: { path: 'pci/0000:03:00.0', driver: 'igb', bus: 'pci' } });
    limits.setEnabled(false);
    expect(system.getLimit('usb0', 'limit_min')).toBeGreaterThan(1_000_000);
    limits.restore();
  });

  test('is nothing that a driver without BQL could be asked for', async () => {
    const limits = await open({ bqlQueues: 0 });
    expect(limits.setEnabled(false)).toMatchObject({ kind: 'invalid' });
  });

  test('puts all back when this process ends by itself', async () => {
    const limits = await open();
    limits.setEnabled(false);
    process.emit('exit', 0);
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 0]);
    expect(limits.restore()).toEqual([]);
  });
});

describe('a setting that is refused', () => {
  // Root may write any file: only the laboratory shows a refusal to it.
  test.skipIf(process.getuid?.() === 0)('names the command that would do it', async () => {
    const limits = await open();
    chmodSync(join(system.root, 'sys/class/net/usb0/queues/tx-0/byte_queue_limits/limit_min'), 0o444);
    expect(limits.setEnabled(false)).toMatchObject({
      kind: 'denied',
      remedy: expect.stringMatching(
        /^echo 456000 \| sudo tee \/sys\/class\/net\/usb0\/queues\/tx-\*\/byte_queue_limits\/limit_min$/m,
      ) as string,
    });
    expect(limits.isEnabled).toBe(true);
    expect(journalNames()).toEqual([]);
  });

  test('because the interface has gone is no matter of permission', async () => {
    const limits = await open();
    limits.set({ limitMinBytes: 1 });
    system.remove('usb0');
    expect(limits.set({ limitMaxBytes: 5000 })).toMatchObject({ kind: 'gone' });
    // There is nothing left that could be put back.
    expect(limits.restore()).toEqual([]);
    expect(journalNames()).toEqual([]);
  });
});

describe('a killed program', () => {
  const stranger = 4_000_000;

  /** As if another process had written the journal. */
  function beSomebodyElse(): void {
    const path = join(system.root, 'run/queuescope/usb0.limits.json');
    const entry = JSON.parse(readFileSync(path, 'utf8')) as object;
    system.write('run/queuescope/usb0.limits.json', JSON.stringify({ ...entry, pid: stranger }));
  }

  async function leave(): Promise<void> {
    const limits = await open();
    system.setLimit('usb0', 'limit', 3028);
    limits.set({ holdTimeMs: 100 });
    limits.setEnabled(false);
    system.setLimit('usb0', 'limit', limits.unlimitedBytes);
    process.removeAllListeners('exit');
    beSomebodyElse();
  }

  test('leaves word of what it changed, and how to put it back', async () => {
    await leave();
    const [entry] = journal.left();
    if (entry === undefined) throw new Error('there is an entry');
    const left = await findLeftLimits(files, entry);
    const folder = join(system.root, 'sys/class/net/usb0/queues/tx-0/byte_queue_limits');
    expect(left?.commands.split('\n')).toEqual([
      `echo 0 | sudo tee ${folder}/limit_min`,
      `echo 1000 | sudo tee ${folder}/hold_time`,
      `echo 3028 | sudo tee ${folder}/limit`,
    ]);
    expect(left === undefined ? false : restoreLeftLimits(left)).toBe(true);
    expect(limitsOf()).toEqual([0, maxLimit, 1000, 3028]);
    expect(await findLeftLimits(files, entry)).toBeUndefined();
  });

  test('what somebody else has set since is left alone', async () => {
    await leave();
    system.setLimit('usb0', 'limit_min', 7000);
    const [entry] = journal.left();
    const left = entry === undefined ? undefined : await findLeftLimits(files, entry);
    expect(left?.files.map(({ path }) => path.split('/').at(-1))).toEqual(['hold_time', 'limit']);
  });

  test('an interface that came anew has limits of its own', async () => {
    await leave();
    system.set('usb0', 'ifindex', 8);
    const [entry] = journal.left();
    expect(entry === undefined ? entry : await findLeftLimits(files, entry)).toBeUndefined();
  });

  test('a program that lives has left nothing', async () => {
    const limits = await open();
    limits.setEnabled(false);
    expect(journal.left()).toEqual([]);
    expect(journalNames()).toEqual(['usb0.limits.json']);
    limits.restore();
  });

  test.each([
    '',
    '{',
    '[]',
    '{"netdev":"usb0"}',
    '{"netdev":"usb0","index":7,"pid":1,"processStart":"","changes":3}',
  ])('a file that is no journal says nothing: %j', async (text) => {
    system.write('run/queuescope/usb0.limits.json', text);
    expect(journal.left()).toEqual([]);
  });

  test('a queue that is none is not written to', async () => {
    system.add('usb0', { device: usb });
    const change = { queue: '../../..', file: 'limit_min', was: 0, set: 1 };
    system.write(
      'run/queuescope/usb0.limits.json',
      JSON.stringify({ netdev: 'usb0', index: 7, pid: stranger, processStart: '', changes: [change] }),
    );
    expect(journal.left()).toMatchObject([{ changes: [] }]);
  });
});

test('without a place for the journal everything else works', async () => {
  journal = new LimitsJournal(undefined);
  const limits = await open();
  expect(limits.setEnabled(false)).toBeUndefined();
  expect(journal.left()).toEqual([]);
  limits.restore();
  expect(limitsOf()).toEqual([0, maxLimit, 1000, 0]);
});

test('the journal is where a reboot clears it', () => {
  expect(defaultJournalFolder({}, 0)).toBe('/run/queuescope');
  expect(defaultJournalFolder({ XDG_RUNTIME_DIR: '/run/user/1000' }, 1000)).toBe('/run/user/1000/queuescope');
  expect(defaultJournalFolder({}, 1000)).toBeUndefined();
});
