import type { Protocol } from 'electron';
import { securityHeaders } from '../src/hosts/web/content-security-policy.ts';
import type { StaticFiles } from '../src/hosts/web/static-files.ts';

/**
 * The window's page comes from `app://queuescope/`: a scheme with an origin of its own, unlike `file:`, so that the
 * Content-Security-Policy is the same as in a browser, as a header, and nothing else on the disk has an address.
 */
const scheme = 'app';
const host = 'queuescope';
export const appOrigin = `${scheme}://${host}`;
export const appUrl = `${appOrigin}/`;

/** Whether an address, or an origin with or without its slash, is the page's own. */
export function isAppUrl(url: string): boolean {
  return url === appOrigin || url.startsWith(appUrl);
}

/** Before the app is ready. */
export function registerAppScheme(protocol: Pick<Protocol, 'registerSchemesAsPrivileged'>): void {
  protocol.registerSchemesAsPrivileged([
    { scheme, privileges: { standard: true, secure: true, supportFetchAPI: true, codeCache: true } },
  ]);
}

/** Once the app is ready. */
export function serveAppScheme(protocol: Pick<Protocol, 'handle'>, files: StaticFiles): void {
  protocol.handle(scheme, (request) => answerAppRequest(files, request));
}

async function answerAppRequest(
  files: StaticFiles,
  request: { readonly url: string; readonly method: string },
): Promise<Response> {
  const headers = securityHeaders([]);
  if (request.method !== 'GET' || !request.url.startsWith(appUrl)) {
    return new Response('Not found\n', { status: 404, headers });
  }
  const answer = await files.answer(request.url.slice(appOrigin.length));
  // A copy on memory of its own, which is what a Response may hold on to.
  return new Response(new Uint8Array(answer.body), {
    status: answer.status,
    headers: { ...headers, 'Content-Type': answer.mediaType, 'Cache-Control': answer.cacheControl },
  });
}
