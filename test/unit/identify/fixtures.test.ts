import { describe, expect, test } from 'vitest';
import { devicesOf, fixtures, further, idOf } from './descriptor-fixtures.ts';

describe('70 devices as people have posted them', () => {
  test('are all there', () => {
    expect(fixtures).toHaveLength(70);
  });

  test.each(fixtures)('$name', ({ text, facts }) => {
    const [device, ...others] = devicesOf(text);
    expect(others).toEqual([]);
    if (device === undefined) throw new Error('no device');
    expect(idOf(device)).toBe(`${facts.vid}:${facts.pid}`);
    expect(device.complete).toBe(facts.complete);
    expect(device.functions[0]?.linuxDriver).toBe(facts.expected_driver);

    for (const expected of facts.expected_by_function) {
      // The data interface of a function that has been told already is not one of its own.
      const isPart = facts.expected_by_function.some(
        (other) => other !== expected && other.data_interface === expected.control_interface,
      );
      if (isPart) continue;
      expect(device.functions).toContainEqual(
        expect.objectContaining({
          linuxDriver: expected.driver,
          configuration: expected.configuration,
          controlInterface: expected.control_interface,
          dataInterface: expected.data_interface,
        }),
      );
    }
  });

  test.each(
    fixtures.filter(({ facts }) =>
      Object.values(facts.linux_driver_by_interface ?? {}).includes(facts.expected_driver),
    ),
  )('$name: no interface but those that the kernel had bound', ({ text, facts }) => {
    const [device] = devicesOf(text);
    const [first] = device?.functions ?? [];
    const claimed = (device?.functions ?? [])
      .filter(
        ({ linuxDriver, configuration }) =>
          linuxDriver === facts.expected_driver && configuration === first?.configuration,
      )
      .flatMap(({ interfaces }) => interfaces);
    const bound = Object.entries(facts.linux_driver_by_interface ?? {})
      .filter(([, driver]) => driver === facts.expected_driver)
      .map(([number]) => Number(number));
    expect(claimed.toSorted((a, b) => a - b)).toEqual(bound.toSorted((a, b) => a - b));
  });

  test('those that are not driven are named, with what can be done', () => {
    for (const { text } of fixtures) {
      for (const { functions, advice } of devicesOf(text)) {
        for (const { reason } of functions) expect(reason).toMatch(/^interface \d+ /);
        expect(advice).toMatch(/^[A-Z].*[.a-z]$/);
      }
    }
  });
});

describe('bug reports', () => {
  test('are more than fifteen', () => {
    expect(further.length).toBeGreaterThanOrEqual(15);
  });

  test.each(further)('$name', ({ text, facts }) => {
    const devices = devicesOf(text).map((device) => ({
      id: idOf(device),
      functions: device.functions.map(({ linuxDriver, configuration, interfaces }) => ({
        linuxDriver,
        configuration,
        interfaces,
      })),
    }));
    expect(devices).toEqual(facts.devices);
  });

  test('a driver that had the interface instead is told', () => {
    const text = further.find(({ name }) => name === 'huawei-15d5-ncm-taken-by-option')?.text ?? '';
    expect(devicesOf(text)[0]?.warnings).toContainEqual(
      expect.stringMatching(/interface 1 was bound to option .* not to huawei_cdc_ncm/),
    );
  });
});
