import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { tokenOfSubprotocols } from '../../rpc/web-handshake.ts';

/** 256 random bits as base64url. */
export function createToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * The host that a request names, if it is one of our own two names; undefined otherwise. A page of a foreign name that
 * resolves to this machine (DNS rebinding) gives itself away here.
 */
export function ownHostOf(request: IncomingMessage, port: number): string | undefined {
  const hosts = request.headersDistinct['host'];
  const host = hosts?.length === 1 ? hosts[0] : undefined;
  return host === `127.0.0.1:${port}` || host === `localhost:${port}` ? host : undefined;
}

/** Whether a socket is asked for by our own page: one Origin, exactly that of the host it asks. */
export function isOwnOrigin(request: IncomingMessage, host: string): boolean {
  const origins = request.headersDistinct['origin'];
  return origins?.length === 1 && origins[0] === `http://${host}`;
}

/** Whether a request for a socket carries the token; compared in constant time. */
export function hasToken(request: IncomingMessage, token: string): boolean {
  const header = request.headers['sec-websocket-protocol'];
  const offered = tokenOfSubprotocols(header?.split(',').map((subprotocol) => subprotocol.trim()) ?? []);
  return offered !== undefined && timingSafeEqual(digest(offered), digest(token));
}

/** Of equal length whatever is compared. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
