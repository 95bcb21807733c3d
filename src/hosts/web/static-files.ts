import { readFile, realpath } from 'node:fs/promises';
import { extname, join, resolve, sep } from 'node:path';

/** An answer to a request for a file, without what the host adds to every answer. */
export interface StaticAnswer {
  readonly status: 200 | 400 | 404 | 503;
  readonly mediaType: string;
  readonly cacheControl: 'no-store' | 'no-cache' | 'public, max-age=31536000, immutable';
  readonly body: Uint8Array;
}

/** The only kinds of file that are served. */
const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

const indexFile = 'index.html';
/** The build names what is in here by its content. */
const hashedFolder = '/assets/';

const notBuiltPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Queuescope: the page is not built</title>
  </head>
  <body>
    <h1>The page of Queuescope is not built</h1>
    <p>The engine runs, but the files of its page are missing. Build them in the folder of Queuescope, then reload:</p>
    <pre>npm run build</pre>
  </body>
</html>
`;

/**
 * The files of one folder, for `GET /path`. Nothing outside of it can be named, not through `..`, an encoded
 * separator or a symbolic link; folders are not listed; hidden files and unknown kinds do not exist.
 */
export class StaticFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  /** @param target the request's path, still encoded, with or without a query */
  async answer(target: string): Promise<StaticAnswer> {
    const path = decodePath(target);
    if (path === undefined) return text(400, 'Bad request');
    const segments = path.split('/').slice(1);
    const isIndex = path === '/' || path === `/${indexFile}`;
    if (!isIndex && segments.some(isNoName)) return text(404, 'Not found');
    const mediaType = mediaTypes[extname(isIndex ? indexFile : path)];
    if (mediaType === undefined) return text(404, 'Not found');
    const body = await this.#read(isIndex ? [indexFile] : segments);
    if (body === undefined) return isIndex ? notBuilt() : text(404, 'Not found');
    return {
      status: 200,
      mediaType,
      cacheControl: cacheControl(path, isIndex),
      body,
    };
  }

  async #read(segments: readonly string[]): Promise<Uint8Array | undefined> {
    try {
      const folder = await realpath(this.#folder);
      const file = await realpath(join(folder, ...segments));
      if (!file.startsWith(folder + sep)) return undefined;
      return await readFile(file);
    } catch {
      // Missing, a folder, or not readable: not there, as far as a page is concerned.
      return undefined;
    }
  }
}

/** The decoded path, or undefined if it is malformed or could mean something else to the file system. */
function decodePath(target: string): string | undefined {
  const [encoded = ''] = target.split(/[?#]/, 1);
  let path: string;
  try {
    path = decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
  if (!path.startsWith('/') || path.includes('\0') || path.includes('\\') || path.includes(':')) {
    return undefined;
  }
  // An encoded slash would make one segment two.
  if (path.split('/').length !== encoded.split('/').length) return undefined;
  return path;
}

/** Empty (two slashes, or one at the end), hidden, or a step up. */
function isNoName(segment: string): boolean {
  return segment === '' || segment.startsWith('.');
}

function cacheControl(path: string, isIndex: boolean): StaticAnswer['cacheControl'] {
  if (isIndex) return 'no-store';
  return path.startsWith(hashedFolder) ? 'public, max-age=31536000, immutable' : 'no-cache';
}

function text(status: 400 | 404, words: string): StaticAnswer {
  return {
    status,
    mediaType: 'text/plain; charset=utf-8',
    cacheControl: 'no-store',
    body: Buffer.from(`${words}\n`),
  };
}

function notBuilt(): StaticAnswer {
  return {
    status: 503,
    mediaType: 'text/html; charset=utf-8',
    cacheControl: 'no-store',
    body: Buffer.from(notBuiltPage),
  };
}
