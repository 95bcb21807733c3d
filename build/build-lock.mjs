import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 100;
const deadlineMs = 180_000;

/**
 * Runs `action` while no other build of the same folder runs. A lock whose owner is gone is taken over.
 * @template T
 * @param {string} folder is made if it is not there
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function withBuildLock(folder, action) {
  mkdirSync(folder, { recursive: true });
  const lock = join(folder, '.lock');
  const startedAtMs = Date.now();
  while (!tryLock(lock)) {
    if (Date.now() - startedAtMs > deadlineMs) {
      throw new Error(
        `another build has held ${lock} for ${deadlineMs / 1000} s; remove it if none is running`,
      );
    }
    await sleep(pollMs);
  }
  try {
    return await action();
  } finally {
    rmSync(lock, { force: true });
  }
}

function tryLock(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (ownerIsAlive(lock)) return false;
  rmSync(lock, { force: true });
  return false;
}

function ownerIsAlive(lock) {
  let pid;
  try {
    pid = Number(readFileSync(lock, 'utf8'));
  } catch {
    // Given back in the meantime.
    return true;
  }
  // Not written yet.
  if (pid === 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
