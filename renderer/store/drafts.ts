import { signal } from '@preact/signals';
import type { AddressSettings, LiveSettings, SessionSettings } from '../../src/contract/settings.ts';
import { defaultSessionSettings } from '../../src/contract/settings.ts';

/** With what the next session of a device will start. */
export interface Draft {
  readonly settings: SessionSettings;
  readonly record: boolean;
}

const freshDraft: Draft = { settings: defaultSessionSettings, record: true };

/** Settings for sessions that do not run yet, one set a device. */
export class Drafts {
  readonly #drafts = signal<ReadonlyMap<string, Draft>>(new Map());

  of(deviceId: string): Draft {
    return this.#drafts.value.get(deviceId) ?? freshDraft;
  }

  change(deviceId: string, live: LiveSettings): void {
    const { settings } = this.of(deviceId);
    this.#put(deviceId, { settings: merge(settings, live) });
  }

  setRecord(deviceId: string, record: boolean): void {
    this.#put(deviceId, { record });
  }

  setAddress(deviceId: string, address: AddressSettings): void {
    this.#put(deviceId, { settings: { ...this.of(deviceId).settings, address } });
  }

  /** @param target IPv4 address; empty: the gateway */
  setTarget(deviceId: string, target: string): void {
    const { target: _before, ...rest } = this.of(deviceId).settings;
    this.#put(deviceId, { settings: target === '' ? rest : { ...rest, target } });
  }

  #put(deviceId: string, change: Partial<Draft>): void {
    this.#drafts.value = new Map(this.#drafts.value).set(deviceId, { ...this.of(deviceId), ...change });
  }
}

function merge(settings: SessionSettings, live: LiveSettings): SessionSettings {
  return {
    ...settings,
    bql: { ...settings.bql, ...defined(live.bql) },
    qdisc: { ...settings.qdisc, ...defined(live.qdisc) },
    load: { ...settings.load, ...defined(live.load) },
    ping: { ...settings.ping, ...defined(live.ping) },
  };
}

/** Without the keys whose value is undefined. */
function defined<T extends object>(values: T | undefined): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values ?? {}).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
