import { execFileSync } from 'node:child_process';

/** Why tests against the stock sqlite3 program cannot run here; undefined if they can. */
export const noStockSqlite: string | undefined = findOut();

function findOut(): string | undefined {
  try {
    execFileSync('sqlite3', ['--version'], { stdio: 'pipe' });
    return undefined;
  } catch {
    return 'the sqlite3 program is not installed';
  }
}

/** What the stock sqlite3 program answers to a query of a file, as lines. */
export function stockSqlite(path: string, sql: string): string[] {
  const output = execFileSync('sqlite3', ['-readonly', path, sql], { encoding: 'utf8', stdio: 'pipe' });
  return output.trimEnd().split('\n');
}
