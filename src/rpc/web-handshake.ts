/**
 * How a page finds and opens its socket. The token stands in the fragment of the page's address, which a browser never
 * sends anywhere, and goes to the engine as a sub-protocol: the only header of its own that a page can give a WebSocket.
 */

/** Path of the socket on the page's own host. */
export const engineSocketPath = '/engine';

/** The sub-protocol that is spoken; the server picks this one and never repeats the token. */
export const engineSubprotocol = 'queuescope';

const tokenPrefix = 'token.';
const fragmentPrefix = '#token=';

/** 256 bits as base64url without padding. */
const tokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** The fragment of the page's address. */
export function fragmentOfToken(token: string): string {
  return `${fragmentPrefix}${token}`;
}

/** The token in a page's `location.hash`; undefined if there is none. */
export function tokenOfFragment(fragment: string): string | undefined {
  if (!fragment.startsWith(fragmentPrefix)) return undefined;
  const token = fragment.slice(fragmentPrefix.length);
  return tokenPattern.test(token) ? token : undefined;
}

/** What a page hands to `new WebSocket(url, …)`. */
export function subprotocolsOfToken(token: string): string[] {
  return [engineSubprotocol, `${tokenPrefix}${token}`];
}

/** The token among the sub-protocols that a client offered; undefined unless there is exactly one. */
export function tokenOfSubprotocols(subprotocols: Iterable<string>): string | undefined {
  let token: string | undefined;
  for (const subprotocol of subprotocols) {
    if (!subprotocol.startsWith(tokenPrefix)) continue;
    if (token !== undefined) return undefined;
    token = subprotocol.slice(tokenPrefix.length);
  }
  return token;
}
