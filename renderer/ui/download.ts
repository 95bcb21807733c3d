import type { ReportFile } from '../store/app-store.ts';

/** Hands a file to the browser to keep. */
export function download({ fileName, mediaType, text, encoding }: ReportFile): void {
  const content =
    encoding === 'base64' ? Uint8Array.from(atob(text), (character) => character.charCodeAt(0)) : text;
  const url = URL.createObjectURL(new Blob([content], { type: mediaType }));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // The browser has taken hold of the blob by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
