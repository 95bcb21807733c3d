import {
  type LinkSpeeds,
  notificationHeaderLength,
  parseNotification,
  parseSpeedChangeData,
} from '../wire/cdc-notification.ts';
import type { DriverHost } from '../usbnet/minidriver.ts';

/**
 * Which of the two numbers of a speed change is which. CDC puts the downlink first, and cdc_ncm reads it so; cdc_ether
 * of Linux takes the first for the uplink (spec 3.1, 3.2).
 */
export type SpeedOrder = 'downlink-first' | 'uplink-first';

/** Reads what a CDC network function says on its interrupt endpoint: carrier and speed. */
export class LinkNotifications {
  readonly #host: DriverHost;
  readonly #order: SpeedOrder;
  /** A speed change came without its data: the next payload is the data (`EVENT_STS_SPLIT`). */
  #split = false;

  constructor(host: DriverHost, order: SpeedOrder) {
    this.#host = host;
    this.#order = order;
  }

  handle(bytes: Uint8Array, length: number, nowUs: number): void {
    // Too short for anything, and no half of a split one either.
    if (length < notificationHeaderLength) return;
    if (this.#split) {
      this.#split = false;
      this.#setSpeeds(parseSpeedChangeData(bytes, 0, length));
      return;
    }
    const notification = parseNotification(bytes, 0, length);
    switch (notification?.kind) {
      case 'network-connection':
        this.#host.linkChange(notification.connected, false, nowUs);
        break;
      case 'speed-change':
        if (notification.speeds === undefined) this.#split = true;
        else this.#setSpeeds(notification.speeds);
        break;
      default:
        break;
    }
  }

  #setSpeeds(speeds: LinkSpeeds | undefined): void {
    if (speeds === undefined) return;
    const { downlinkBitsPerSecond: first, uplinkBitsPerSecond: second } = speeds;
    if (this.#order === 'downlink-first') this.#host.setLinkSpeed(first, second);
    else this.#host.setLinkSpeed(second, first);
  }
}
