import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** From the start of the program to what a user waits for. */
export interface StartupCost {
  /** Node alone, that does nothing. */
  readonly nodeMs: number;
  /** `queuescope run` of a virtual device, to the first sample. */
  readonly firstSampleMs: number;
  /** Of it: until the device is asked for. */
  readonly sessionMs: number;
  readonly ratio: number;
}

const program = fileURLToPath(new URL('../../build/queuescope.mjs', import.meta.url));
const rounds = 5;
const limitMs = 30_000;

/** Milliseconds until the program has printed each of the words; undefined for those that never came. */
function timeUntil(args: readonly string[], words: readonly string[]): Promise<readonly number[]> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const child = spawn(process.execPath, [...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    const deadline = setTimeout(() => child.kill('SIGKILL'), limitMs);
    const times: number[] = [];
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (data: string) => {
      text += data;
      while (times.length < words.length && text.includes(words[times.length] ?? '')) {
        times.push(performance.now() - begin);
      }
      if (times.length === words.length) child.kill('SIGKILL');
    });
    child.on('error', reject).on('close', () => {
      clearTimeout(deadline);
      resolve(times);
    });
  });
}

/** The best of some rounds each, in turns. The program must have been built. */
export async function measureStartup(): Promise<StartupCost> {
  let nodeMs = Number.POSITIVE_INFINITY;
  let firstSampleMs = Number.POSITIVE_INFINITY;
  let sessionMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const [bare = Number.NaN] = await timeUntil(['-e', 'console.log("here")'], ['here']);
    const [session = Number.NaN, sample = Number.NaN] = await timeUntil(
      [program, 'run', 'sim:modem-10mbit', '--duration', '5', '--json'],
      ['"type":"session"', '"type":"sample"'],
    );
    nodeMs = Math.min(nodeMs, bare);
    sessionMs = Math.min(sessionMs, session);
    firstSampleMs = Math.min(firstSampleMs, sample);
  }
  return { nodeMs, firstSampleMs, sessionMs, ratio: firstSampleMs / nodeMs };
}
