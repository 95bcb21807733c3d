import { parseNotification } from '../wire/cdc-notification.ts';
import type { DriverHost, Minidriver } from '../usbnet/minidriver.ts';
import type { Procedure } from '../usbnet/procedure.ts';
import { EmbeddedAt } from './embedded-at.ts';
import { bindNcm, type NcmVariant } from './ncm-bind.ts';
import { NcmHooks, type NcmHooksOptions } from './ncm-hooks.ts';

const variant: NcmVariant = {
  name: 'huawei_cdc_ncm',
  preferences: { ndpToEnd: true, preferNtb32: true },
  // The status endpoint belongs to the AT channel.
  linkInterrupt: false,
  makeHooks: (host, options, controlInterface) => new HuaweiNcmHooks(host, options, controlInterface),
};

/**
 * Huawei's NCM (spec 3.7): the NDP behind the datagrams, NTB32 where there is a choice, and AT commands embedded in the
 * control interface. No data flow before the stick has been told to connect, which is all that is said there.
 */
export const huaweiNcm: Minidriver = {
  name: 'huawei_cdc_ncm',
  bind: (context) => bindNcm(variant, context),
};

const connectionQuery = 'AT^NDISSTATQRY?';
/** With the profile that the stick keeps. */
const connect = 'AT^NDISDUP=1,1';
const disconnect = 'AT^NDISDUP=1,0';
const connected = /^\^NDISSTATQRY: ?1\b/;

class HuaweiNcmHooks extends NcmHooks {
  readonly #at: EmbeddedAt;
  /** The connection is ours, and ends with us; one that was there before goes on. */
  #dialled = false;

  constructor(host: DriverHost, options: NcmHooksOptions, controlInterface: number) {
    super(host, options);
    this.#at = new EmbeddedAt(controlInterface);
  }

  status(bytes: Uint8Array, length: number, nowUs: number): void {
    if (parseNotification(bytes, 0, length)?.kind === 'response-available') this.host.scheduleWork(nowUs);
  }

  *work(): Procedure<void> {
    const lines = yield* this.#at.fetchUnasked();
    if (lines.length > 0) this.host.log.log('debug', 'the modem says', { lines: lines.join(' | ') });
  }

  /** A stick that does not understand, or is connected by other means, is used as it is. */
  *reset(): Procedure<void> {
    const state = yield* this.#at.command(connectionQuery);
    if (state === undefined || state.lines.some((line) => connected.test(line))) return;
    const answer = yield* this.#at.command(connect);
    this.#dialled = answer?.ok === true;
    if (!this.#dialled) this.host.log.log('warn', 'the modem did not take the call', { command: connect });
  }

  *stop(): Procedure<void> {
    if (!this.#dialled) return;
    this.#dialled = false;
    yield* this.#at.command(disconnect);
  }
}
