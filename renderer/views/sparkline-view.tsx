import { useEffect, useRef } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { Sparkline } from '../charts/sparkline.ts';

/** Round trip of the last 30 seconds of a session. */
export function SparklineView({ sessionId }: { readonly sessionId: string }) {
  const { store, loop, colours } = useApp();
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (canvas.current === null) return undefined;
    const sparkline = new Sparkline(
      canvas.current,
      () => store.engine.dataOf(sessionId),
      () => colours.peek(),
    );
    return loop.add(sparkline);
  }, [sessionId, store, loop, colours]);
  return (
    <span class="sparkline" aria-hidden="true">
      <canvas ref={canvas} />
    </span>
  );
}
