import { formatBytes, formatElapsed } from '../../src/base/units.ts';
import type { ExperimentStatus } from '../../src/contract/experiment.ts';
import { useApp } from '../app-context.ts';
import { experimentKey } from '../store/app-store.ts';
import { hint } from '../ui/hint.tsx';
import { SparklineView } from './sparkline-view.tsx';

/** An experiment that is under way: which segment, how long still, how much data. */
export function ExperimentProgress({ status }: { readonly status: ExperimentStatus }) {
  const { store } = useApp();
  const { sessionId, deviceId, scenario, segment, segments, seconds, secondsLeft, dataBytes, maxDataBytes } =
    status;
  const device = store.engine.entries.value.find((entry) => entry.device.id === deviceId)?.device;
  return (
    <section class="experiment-progress" aria-label="Progress">
      <h2>
        {scenario} <span class="quiet">on {device?.name ?? deviceId}</span>
      </h2>
      <p class="experiment-now" role="status">
        {stepWords(status)}
      </p>
      <progress max={seconds} value={Math.max(0, seconds - secondsLeft)} aria-label="Part that is done" />
      <p class="quiet">
        {formatElapsed(secondsLeft * 1e6)} left
        {segments > 0 && segment > 0 ? `, segment ${segment} of ${segments}` : ''}
        {`, ${formatBytes(dataBytes)}${maxDataBytes === undefined ? '' : ` of at most ${formatBytes(maxDataBytes)}`}`}
      </p>
      <p class="experiment-round-trip">
        <span class="quiet">Round trip, last 30 s</span>
        <SparklineView sessionId={sessionId} />
      </p>
      <Remarks status={status} />
      <p class="experiment-buttons">
        <button type="button" class="button" onClick={() => store.select(deviceId)}>
          Watch it live
        </button>
        <button
          type="button"
          class="button"
          disabled={store.pending.value.has(experimentKey) || status.state === 'ending'}
          onClick={() => void store.stopExperiment(status)}
          {...hint('Ends it now; what was measured is judged and kept.')}
        >
          Stop
        </button>
      </p>
    </section>
  );
}

function stepWords({ state, segmentName }: ExperimentStatus): string {
  switch (state) {
    case 'preparing':
      return 'Getting the device ready …';
    case 'ending':
      return 'Waiting for the last probes …';
    default:
      return segmentName;
  }
}

/** What is to be told of how it goes, or went. */
export function Remarks({ status }: { readonly status: ExperimentStatus }) {
  if (status.notes.length === 0) return null;
  return (
    <ul class="remarks" aria-label="Remarks">
      {status.notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}
