import type { DriverHost, Minidriver } from '../usbnet/minidriver.ts';
import { LinkNotifications } from './link-notifications.ts';
import { bindNcm, type NcmVariant } from './ncm-bind.ts';
import { NcmHooks, type NcmHooksOptions } from './ncm-hooks.ts';

const variant: NcmVariant = {
  name: 'cdc_ncm',
  preferences: { ndpToEnd: false, preferNtb32: false },
  linkInterrupt: true,
  makeHooks: (host, options) => new CdcNcmHooks(host, options),
};

/** CDC-NCM: many Ethernet frames a transfer, in NTBs (spec 3.2). */
export const cdcNcm: Minidriver = {
  name: 'cdc_ncm',
  bind: (context) => bindNcm(variant, context),
};

class CdcNcmHooks extends NcmHooks {
  readonly #notifications: LinkNotifications;

  constructor(host: DriverHost, options: NcmHooksOptions) {
    super(host, options);
    this.#notifications = new LinkNotifications(host, 'downlink-first');
  }

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    this.#notifications.handle(bytes, length, nowUs);
  }
}
