import type { Session, WebContents } from 'electron';
import { appOrigin, appUrl, isAppUrl } from './app-protocol.ts';

/** The one permission that the page has: to put the command of a remedy on the clipboard. */
const allowedPermission = 'clipboard-sanitized-write';

/** Shuts a session off: no permissions, no devices, no network, no downloads but the page's own reports. */
export function lockSession(session: Session): void {
  session.setPermissionRequestHandler((_contents, permission, callback, { requestingUrl }) => {
    callback(permission === allowedPermission && isAppUrl(requestingUrl));
  });
  session.setPermissionCheckHandler((_contents, permission, origin) => {
    return permission === allowedPermission && isAppUrl(origin);
  });
  session.setDevicePermissionHandler(() => false);
  session.setDisplayMediaRequestHandler((_request, callback) => callback(null));
  // The page's own scheme is none of these. Development tools are part of the browser and stay.
  session.webRequest.onBeforeRequest({ urls: ['<all_urls>'] }, ({ url }, callback) => {
    callback({
      cancel: !isAppUrl(url) && !url.startsWith('devtools:') && !url.startsWith(`blob:${appOrigin}`),
    });
  });
  session.on('will-download', (event, item) => {
    if (!item.getURL().startsWith(`blob:${appUrl}`)) event.preventDefault();
  });
}

/** Keeps a window on its page: no other address, no other window, no guest. */
export function lockContents(contents: WebContents): void {
  contents.setWindowOpenHandler(() => ({ action: 'deny' }));
  contents.on('will-navigate', (event) => {
    if (event.url !== appUrl) event.preventDefault();
  });
  contents.on('will-frame-navigate', (event) => {
    if (event.url !== appUrl) event.preventDefault();
  });
  contents.on('will-redirect', (event) => event.preventDefault());
  contents.on('will-attach-webview', (event) => event.preventDefault());
}
