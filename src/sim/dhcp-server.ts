import { type DhcpMessage, encodeDhcpMessage, parseDhcpMessage } from '../wire/dhcp.ts';
import { ipv4PrefixMask } from '../wire/ipv4-address.ts';

export interface DhcpServerOptions {
  /** The server's own address, also given out as router and DNS server. */
  readonly serverAddress: number;
  readonly prefixLength: number;
  /** The one address there is to lease. */
  readonly clientAddress: number;
  readonly leaseTimeSeconds: number;
}

/** The reply to a DHCP message: a UDP payload, and where it goes. */
export interface DhcpReply {
  readonly payload: Uint8Array;
  /** 255.255.255.255 or the client's address. */
  readonly destination: number;
}

const broadcastAddress = 0xffff_ffff;

/** A DHCP server with one address (RFC 2131), which whoever asks may have: a link has one client. */
export class DhcpServer {
  readonly #options: DhcpServerOptions;

  constructor(options: DhcpServerOptions) {
    this.#options = options;
  }

  /** The answer to a UDP payload that came to port 67, or undefined if there is none. */
  answer(bytes: Uint8Array, offset: number, length: number): DhcpReply | undefined {
    const message = parseDhcpMessage(bytes, offset, length);
    if (message?.operation !== 'request') return undefined;
    const { clientAddress } = this.#options;
    switch (message.type) {
      case 'discover':
        return this.#reply(message, 'offer', clientAddress);
      case 'request': {
        const { serverIdentifier } = message;
        if (serverIdentifier !== undefined && serverIdentifier !== this.#options.serverAddress) {
          return undefined;
        }
        // A renewing client has the address and names it as its own; any other asks for it.
        const wanted = message.requestedAddress ?? message.clientAddress;
        if (wanted !== clientAddress) return this.#reply(message, 'nak', 0);
        return this.#reply(message, 'ack', clientAddress);
      }
      case 'inform':
        return this.#reply(message, 'ack', 0);
      default:
        return undefined;
    }
  }

  #reply(request: DhcpMessage, type: 'offer' | 'ack' | 'nak', yourAddress: number): DhcpReply {
    const { serverAddress, prefixLength, leaseTimeSeconds } = this.#options;
    const payload = encodeDhcpMessage({
      type,
      operation: 'reply',
      transactionId: request.transactionId,
      secondsElapsed: 0,
      broadcast: request.broadcast,
      clientAddress: type === 'nak' ? 0 : request.clientAddress,
      yourAddress,
      serverAddress: 0,
      relayAddress: 0,
      clientMac: request.clientMac,
      serverIdentifier: serverAddress,
      ...(type === 'nak'
        ? {}
        : {
            subnetMask: ipv4PrefixMask(prefixLength),
            routers: [serverAddress],
            dnsServers: [serverAddress],
          }),
      ...(yourAddress === 0
        ? {}
        : {
            leaseTimeSeconds,
            renewalTimeSeconds: Math.floor(leaseTimeSeconds / 2),
            rebindingTimeSeconds: Math.floor((leaseTimeSeconds * 7) / 8),
          }),
    });
    // Who has an address can be reached there; anyone else, and whoever is to lose it, by broadcast (section 4.1).
    const toClient = request.clientAddress !== 0 && type !== 'nak';
    return { payload, destination: toClient ? request.clientAddress : broadcastAddress };
  }
}
