import { execFile } from 'node:child_process';

/** A program that changes one setting has no reason to take longer. */
const limitMs = 5000;

/** Runs iproute2's `ip`. Answers with why it failed, or undefined. */
export function runIp(command: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile('ip', [...command], { timeout: limitMs }, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim() || error.message);
    });
  });
}
