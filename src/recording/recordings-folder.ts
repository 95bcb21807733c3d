import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What the default folder depends on; for tests. */
export interface FolderSurroundings {
  readonly platform: string;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  exists(path: string): boolean;
}

function surroundings(): FolderSurroundings {
  return { platform: process.platform, home: homedir(), environment: process.env, exists: existsSync };
}

/**
 * Where recordings go unless the user says otherwise: `Documents/Queuescope` in the home directory, for they are the
 * user's documents, to be found and handed on with any file manager. On a Linux machine without a documents folder
 * (a server, a laboratory box) it is `queuescope` in the XDG data directory.
 */
export function defaultRecordingsFolder(around: FolderSurroundings = surroundings()): string {
  const { platform, home, environment, exists } = around;
  const documents = environment['XDG_DOCUMENTS_DIR'] || join(home, 'Documents');
  if (platform === 'win32' || platform === 'darwin' || exists(documents)) {
    return join(documents, 'Queuescope');
  }
  return join(environment['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'queuescope');
}
