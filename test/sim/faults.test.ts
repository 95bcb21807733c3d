import { describe, expect, test } from 'vitest';
import { Random } from '../../src/base/random.ts';
import { VirtualClock } from '../../src/base/virtual-clock.ts';
import { catalogue } from '../../src/sim/catalogue.ts';
import type { SimPersonality } from '../../src/sim/personality.ts';
import type { TransportFault } from '../../src/transports/transport-fault.ts';
import { RecoveryLadder } from '../../src/usbnet/recovery-ladder.ts';
import { DrivenDevice, slowed } from './driven-device.ts';

/**
 * Every virtual device, and so every minidriver, under load, with faults at random moments. After each the device has to
 * work again; each transfer ends once, BQL balances to zero, and nothing is left over when the device is given back.
 */

const faultsPerDevice = 1000;
const workLimitUs = 20_000_000;

const faultNames = [
  'unplug',
  'stall',
  'short',
  'babble',
  'duplicate',
  'failed',
  'protocol-error',
  'late',
  'refused',
] as const;
type FaultName = (typeof faultNames)[number];

function faultOf(name: Exclude<FaultName, 'unplug'>, random: Random): TransportFault {
  switch (name) {
    case 'stall':
      return random.chance(0.5) ? { kind: 'halt' } : { kind: 'end', status: 'stall' };
    case 'short':
      return { kind: 'truncate', bytes: random.integer(0, 600) };
    case 'babble':
      return { kind: 'babble' };
    case 'duplicate':
      return { kind: 'duplicate' };
    case 'failed':
      return { kind: 'end', status: random.chance(0.5) ? 'failed' : 'timed-out' };
    case 'protocol-error':
      return { kind: 'end', status: 'protocol-error' };
    case 'late':
      return { kind: 'delay', us: random.integer(1, 30_000) };
    case 'refused':
      return { kind: 'refuse', result: random.chance(0.5) ? 'no-memory' : 'failed' };
  }
}

interface Tally {
  readonly faults: Record<FaultName, number>;
  transfers: number;
  plugged: number;
}

function soak(personality: SimPersonality, seed: number): Tally {
  const clock = new VirtualClock(0);
  const random = new Random(seed);
  const faults = Object.fromEntries(faultNames.map((name) => [name, 0])) as Record<FaultName, number>;
  const tally: Tally = { faults, transfers: 0, plugged: 0 };
  const plugIn = (): DrivenDevice => {
    tally.plugged++;
    return new DrivenDevice(personality, clock, random.uint32());
  };
  const unplugged = (device: DrivenDevice): void => {
    device.giveBack();
    tally.transfers += device.ledger.ended;
  };

  let device = plugIn();
  for (let number = 1; number <= faultsPerDevice; number++) {
    const name = faultNames[random.integer(0, faultNames.length - 1)] ?? 'unplug';
    tally.faults[name]++;
    const where = `fault ${number} (${name})`;
    try {
      if (!device.works(workLimitUs)) throw new Error('the device does not work');
      clock.runUntil(clock.nowUs() + random.integer(0, 20_000));
      if (name === 'unplug') {
        if (random.chance(0.5)) device.sim.unplug(clock.nowUs());
        else device.faults.vanish(clock.nowUs());
        if (!device.until(() => device.gone, 1_000_000)) throw new Error('the unplugging was not told');
        unplugged(device);
        device = plugIn();
      } else {
        const { usbnet } = device.path.netif ?? {};
        const endpoints = device.bulkEndpoints;
        const endpoint = endpoints[random.integer(0, endpoints.length - 1)] ?? 0;
        device.faults.arm({ endpoint, times: 1, fault: faultOf(name, random) });
        if (usbnet === undefined) throw new Error('there is no interface');
        if (!device.until(() => device.faults.armed === 0, workLimitUs)) throw new Error('it did not strike');
      }
      if (device.failure !== undefined) throw device.failure;
    } catch (error) {
      throw new Error(`${where}, seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
  if (!device.works(workLimitUs)) throw new Error('the device does not work in the end');
  unplugged(device);
  return tally;
}

describe(`${faultsPerDevice} faults at random moments under load`, () => {
  test.each(catalogue)(
    '$name ($firmware)',
    (personality) => {
      const tally = soak(slowed(personality), 0xfa017 + personality.productId);
      const count = Object.values(tally.faults).reduce((sum, times) => sum + times, 0);
      expect(count).toBe(faultsPerDevice);
      expect(tally.plugged).toBe(tally.faults.unplug + 1);
      expect(Math.min(...Object.values(tally.faults))).toBeGreaterThan(faultsPerDevice / 20);
      expect(tally.transfers).toBeGreaterThan(faultsPerDevice);
    },
    120_000,
  );
});

describe('an endpoint that sticks', () => {
  const loadBitsPerSecond = 500_000;
  const recoveryLimitUs = 120_000_000;
  const steps = ['resubmit', 'clear-halt', 'reselect'] as const;
  const cures = ['cancel', 'clear-halt', 'set-interface'] as const;
  const cases = catalogue.flatMap((personality) =>
    cures.flatMap((until) =>
      (['in', 'out'] as const).map((direction) => ({
        personality,
        name: personality.name,
        until,
        direction,
      })),
    ),
  );

  test.each(cases)(
    '$name, $direction, until $until: goes on in the same session',
    ({ personality, direction, until }) => {
      const clock = new VirtualClock(0);
      const taken: string[] = [];
      let recovered = 0;
      const ladder = new RecoveryLadder((report) => {
        if (report.kind === 'begun') taken.push(report.step);
        if (report.kind === 'recovered') recovered++;
      });
      const device = new DrivenDevice(slowed(personality), clock, 7, loadBitsPerSecond, ladder);
      expect(device.works(workLimitUs)).toBe(true);
      const [bulkIn, bulkOut] = device.bulkEndpoints;
      const endpoint = direction === 'in' ? bulkIn : bulkOut;
      device.faults.arm({ endpoint, times: 1, fault: { kind: 'stick', until } });
      expect(device.until(() => device.faults.armed === 0, workLimitUs)).toBe(true);
      // What was asked for before still brings answers.
      expect(device.until(() => device.problems.has('stalled'), recoveryLimitUs)).toBe(true);
      expect(device.works(recoveryLimitUs)).toBe(true);
      clock.runUntil(clock.nowUs() + 1_000_000);
      // What is stuck on its way out is cancelled by the kernel's own watchdog too, before the first step or after it.
      const needed = cures.indexOf(until) + 1;
      expect(taken).toEqual(steps.slice(0, taken.length));
      expect(needed - taken.length).toBeLessThanOrEqual(direction === 'out' && until === 'cancel' ? 1 : 0);
      expect(taken.length).toBeLessThanOrEqual(needed);
      expect(recovered).toBe(Math.min(1, taken.length));
      expect([...device.problems.keys()]).toEqual([]);
      expect(device.reopens).toEqual([]);
      device.giveBack();
    },
    60_000,
  );

  test.each(catalogue)(
    '$name, until the port is reset: the session is asked to take the device anew',
    (personality) => {
      const clock = new VirtualClock(0);
      const ladder = new RecoveryLadder(() => {});
      const device = new DrivenDevice(slowed(personality), clock, 7, loadBitsPerSecond, ladder);
      expect(device.works(workLimitUs)).toBe(true);
      const [bulkIn] = device.bulkEndpoints;
      device.faults.arm({ endpoint: bulkIn, times: 1, fault: { kind: 'stick', until: 'reset' } });
      expect(device.until(() => device.reopens.length > 0, recoveryLimitUs)).toBe(true);
      expect(device.reopens).toEqual(['rebind']);
      expect(device.problems.get('stalled')?.message).toMatch(/nothing comes from it/);
      device.giveBack();
    },
    60_000,
  );
});

/** What they run has no way to say that there is no link: for the host it is a device that has gone silent. */
const tellsNothingOfItsLink: ReadonlySet<string> = new Set(['cdc-eem', 'huawei-ncm']);

/** The reports of a ladder while the link is down for a minute; it has to work again after that. */
function reportsOfLinkDown(personality: SimPersonality): readonly string[] {
  const clock = new VirtualClock(0);
  const reports: string[] = [];
  const ladder = new RecoveryLadder(({ kind }) => reports.push(kind));
  const device = new DrivenDevice(slowed(personality), clock, 9, 500_000, ladder);
  expect(device.works(workLimitUs)).toBe(true);
  device.sim.dropCarrier(clock.nowUs());
  clock.runUntil(clock.nowUs() + 60_000_000);
  device.sim.raiseCarrier(clock.nowUs());
  expect(device.works(workLimitUs)).toBe(true);
  device.giveBack();
  return reports;
}

describe('a link that is down for a minute', () => {
  test.each(catalogue.filter(({ firmware }) => !tellsNothingOfItsLink.has(firmware)))(
    '$name says so: that is no stall, and nothing is done about it',
    (personality) => {
      expect(reportsOfLinkDown(personality)).toEqual([]);
    },
  );

  test.each(catalogue.filter(({ firmware }) => tellsNothingOfItsLink.has(firmware)))(
    '$name cannot say so: it is taken for a stall, and what is done about it does no harm',
    (personality) => {
      expect(reportsOfLinkDown(personality)).toContain('begun');
    },
  );
});
