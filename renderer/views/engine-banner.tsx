import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { Failure } from './problem-list.tsx';

/** The engine cannot be reached: what happened, when it is tried again, and a button to try now. */
export function EngineBanner() {
  const { store } = useApp();
  const link = store.link.value;
  if (link.phase !== 'gone') return <Failure error={store.linkProblem.value} />;
  return (
    <div class="engine-banner" role="alert">
      <p>
        <strong>No connection to the engine.</strong> {link.reason}{' '}
        {link.retryAtMs === undefined ? null : <Countdown untilMs={link.retryAtMs} />}
      </p>
      <button type="button" class="button small" onClick={() => store.retryLink()}>
        {link.retryAtMs === undefined ? 'Try again' : 'Try now'}
      </button>
    </div>
  );
}

function Countdown({ untilMs }: { readonly untilMs: number }) {
  const [nowMs, setNowMs] = useState(() => performance.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNowMs(performance.now()), 250);
    return () => window.clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((untilMs - nowMs) / 1000));
  // Not announced again with every second.
  return <span aria-live="off">{seconds === 0 ? 'Trying now.' : `Next attempt in ${seconds} s.`}</span>;
}
