import '../../../renderer/no-eval.ts';
import { signal } from '@preact/signals';
import type { LinkState } from '../../../renderer/engine-link.ts';
import { mount } from '../../../renderer/mount.tsx';
import { type FakeBench, FakeEngine } from '../../harness/fake-engine.ts';

/**
 * The app in front of a made-up engine, for tests in a real browser. The address says which: `?bench=full`,
 * and with `history=20` a session of the modem has already run for that many seconds.
 */
export interface FakePage {
  readonly engine: FakeEngine;
  /** Breaks the connection, as the page sees it; undefined mends it. */
  breakLink(reason: string | undefined): void;
}

const tickMs = 25;
const query = new URLSearchParams(location.search);
const engine = new FakeEngine({ bench: (query.get('bench') ?? 'virtual') as FakeBench });
const state = signal<LinkState>({ phase: 'open', api: engine });

const historySeconds = Number(query.get('history') ?? 0);
if (historySeconds > 0) {
  await engine.call('session.start', { deviceId: 'sim:modem', record: true });
  for (let i = 0; i < historySeconds * 10; i++) engine.advance(100_000);
}

let lastMs = performance.now();
setInterval(() => {
  const nowMs = performance.now();
  engine.advance((nowMs - lastMs) * 1000);
  lastMs = nowMs;
}, tickMs);

const page: FakePage = {
  engine,
  breakLink(reason) {
    state.value =
      reason === undefined
        ? { phase: 'open', api: engine }
        : { phase: 'gone', reason, retryAtMs: performance.now() + 5000 };
  },
};
Object.assign(window, { fakePage: page });

const root = document.getElementById('app');
if (root !== null) {
  mount(root, { state, problem: signal(undefined), retry: () => page.breakLink(undefined) });
}
