import { usbipPort } from '../wire/usbip.ts';

/** A USB/IP server as it is named. */
export interface UsbipServer {
  /** Name or address; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

const scheme = 'usbip://';
const maxPort = 0xffff;

/**
 * `host`, `host:port`, `[ipv6]` or `[ipv6]:port`, with or without `usbip://` before it; undefined: it is none of these.
 */
export function parseUsbipServer(text: string): UsbipServer | undefined {
  const name = (text.startsWith(scheme) ? text.slice(scheme.length) : text).replace(/\/$/, '');
  const match = /^(?:\[(?<ipv6>[0-9a-fA-F:.]+(?:%\w+)?)\]|(?<name>[\w.-]+))(?::(?<port>\d{1,5}))?$/.exec(
    name,
  );
  const host = match?.groups?.['ipv6'] ?? match?.groups?.['name'];
  const port = match?.groups?.['port'] === undefined ? usbipPort : Number(match.groups['port']);
  return host === undefined || port === 0 || port > maxPort ? undefined : { host, port };
}

/** As people write it; the usual port is left out. */
export function formatUsbipServer({ host, port }: UsbipServer): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === usbipPort ? name : `${name}:${port}`;
}

/** `usbip://<host>[:<port>]/<busid>` */
export function formatUsbipDeviceId(server: UsbipServer, busId: string): string {
  return `${scheme}${formatUsbipServer(server)}/${busId}`;
}

/** The parts of a device's id; undefined: it is no such id. */
export function parseUsbipDeviceId(id: string): { server: UsbipServer; busId: string } | undefined {
  if (!id.startsWith(scheme)) return undefined;
  const slash = id.lastIndexOf('/');
  const busId = id.slice(slash + 1);
  const server = slash < scheme.length ? undefined : parseUsbipServer(id.slice(0, slash));
  return server === undefined || !isBusId(busId) ? undefined : { server, busId };
}

/** What a bus id may look like; it has 31 characters at most. */
export function isBusId(text: string): boolean {
  return /^[A-Za-z0-9][\w.:-]{0,30}$/.test(text);
}
