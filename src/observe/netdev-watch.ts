import type { NetdevFiles } from './netdev-files.ts';

const lookIntervalMs = 1000;

/**
 * Looks once a second which network interfaces there are: sysfs does not tell of new ones by itself. Does not keep the
 * process alive.
 * @returns stops it
 */
export function watchNetdevs(files: NetdevFiles, handleChange: () => void): () => void {
  let known: string | undefined;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    const names = await files.names();
    const found = await Promise.all(names.map(async (name) => `${name} ${await files.index(name)}`));
    const now = found.join('\n');
    if (isStopped) return;
    if (known !== undefined && known !== now) handleChange();
    known = now;
    timer = setTimeout(() => void look(), lookIntervalMs).unref();
  };
  void look();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
