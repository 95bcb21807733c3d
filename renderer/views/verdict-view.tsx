import { formatBitRate, formatCount, formatDuration, formatShare, noValue } from '../../src/base/units.ts';
import type { ArmResult, ExperimentStatus, ExperimentVerdict } from '../../src/contract/experiment.ts';
import { useApp } from '../app-context.ts';
import { reportKey } from '../store/app-store.ts';
import { Icon } from '../ui/icon.tsx';
import { DistributionView } from './distribution-view.tsx';
import { Remarks } from './experiment-progress.tsx';
import { Failure } from './problem-list.tsx';
import { ReportButtons } from './report-buttons.tsx';

const endWords: Partial<Record<ExperimentStatus['state'], string>> = {
  stopped: 'It was ended before its time: this is what was measured up to then.',
  failed: 'The device failed before its end: this is what was measured up to then.',
};

/** What an experiment came to: the sentence, the distributions, the figures, what limits them, and the report. */
export function VerdictView({ status }: { readonly status: ExperimentStatus }) {
  const { store } = useApp();
  const { verdict, sessionId, scenario, deviceId } = status;
  const session = store.engine.sessions.value.find(({ id }) => id === sessionId);
  const recordingId = session?.recording?.id;
  return (
    <section class="verdict-view" aria-label="Verdict">
      <p class="quiet">
        {scenario} on {session?.device.name ?? deviceId}
      </p>
      {verdict === undefined ? (
        <p class="verdict-sentence">It ended without a verdict.</p>
      ) : (
        <p class={`verdict-sentence verdict-${verdict.kind.replaceAll(' ', '-')}`} role="status">
          <b>{verdict.kind}</b>
          {verdict.sentence}
        </p>
      )}
      {endWords[status.state] === undefined ? null : <p class="scenario-note">{endWords[status.state]}</p>}
      {verdict?.calibration === undefined ? null : <p class="scenario-note">Fitted: {verdict.calibration}</p>}
      <p class="experiment-buttons">
        {recordingId === undefined ? (
          <span class="quiet">Not recorded, so there is no report.</span>
        ) : (
          <>
            <span class="quiet">Report</span>
            <ReportButtons recordingId={recordingId} />
          </>
        )}
        <button type="button" class="button small" onClick={() => store.select(deviceId)}>
          Show the charts
        </button>
      </p>
      <Failure
        error={recordingId === undefined ? undefined : store.failures.value.get(reportKey(recordingId))}
      />
      {verdict === undefined ? null : <Evidence verdict={verdict} />}
      <Remarks status={status} />
    </section>
  );
}

function Evidence({ verdict }: { readonly verdict: ExperimentVerdict }) {
  const { criteria, warnings } = verdict;
  return (
    <>
      {criteria.length === 0 ? null : (
        <ul class="criteria" aria-label="The scenario’s own criteria">
          {criteria.map(({ text, passed }) => (
            <li key={text} class={passed ? 'met' : 'missed'}>
              <Icon name={passed ? 'check' : 'close'} size={16} />
              {passed ? 'Met' : 'Not met'}: {text}
            </li>
          ))}
        </ul>
      )}
      <DistributionView arms={verdict.arms} />
      <ArmTable arms={verdict.arms} />
      <ScoreTable verdict={verdict} />
      {warnings.length === 0 ? null : (
        <>
          <h2>What to know about these numbers</h2>
          <ul class="remarks" aria-label="Warnings">
            {warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function ArmTable({ arms }: { readonly arms: readonly ArmResult[] }) {
  const severalDirections =
    new Set(arms.map(({ direction }) => direction).filter((one) => one !== 'idle')).size > 1;
  return (
    <table class="recordings experiment-table">
      <thead>
        <tr>
          <th scope="col">Measured</th>
          {['segments', 'round trip p50', 'p95', 'p99', 'lost', 'up', 'down'].map((name) => (
            <th key={name} scope="col" class="number">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {arms.map((arm) => (
          <tr key={`${arm.arm} ${arm.direction}`}>
            <th scope="row">
              {arm.arm}
              {severalDirections && arm.direction !== 'idle' ? `, ${arm.direction}` : ''}
            </th>
            <td class="number">{formatCount(arm.segments)}</td>
            {[50, 95, 99].map((percentile) => (
              <td key={percentile} class="number">
                {formatDuration(arm.rttPercentilesUs[percentile] ?? Number.NaN)}
              </td>
            ))}
            <td class="number">{arm.probes === 0 ? noValue : formatShare(arm.lost / arm.probes)}</td>
            <td class="number">{formatBitRate(arm.upBitsPerSecond ?? Number.NaN)}</td>
            <td class="number">{formatBitRate(arm.downBitsPerSecond ?? Number.NaN)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ScoreTable({ verdict: { scores } }: { readonly verdict: ExperimentVerdict }) {
  const known = scores.filter(
    ({ grade, roundTripsPerMinute }) => grade !== null || roundTripsPerMinute !== null,
  );
  const [first] = known;
  if (first === undefined) return null;
  return (
    <>
      <table class="recordings experiment-table">
        <thead>
          <tr>
            <th scope="col">On common scales</th>
            <th scope="col" class="number">
              bufferbloat grade
            </th>
            <th scope="col" class="number">
              mean increase
            </th>
            <th scope="col" class="number">
              round trips per minute
            </th>
            <th scope="col">rating</th>
          </tr>
        </thead>
        <tbody>
          {known.map((score) => (
            <tr key={score.arm}>
              <th scope="row">{score.arm}</th>
              <td class="number">
                <b>{score.grade ?? noValue}</b>
              </td>
              <td class="number">{formatDuration(score.meanIncreaseUs ?? Number.NaN)}</td>
              <td class="number">{formatCount(score.roundTripsPerMinute ?? Number.NaN)}</td>
              <td>
                {score.rating === null ? noValue : `${score.rating}, ${score.confidence ?? ''} confidence`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <details class="quiet methods">
        <summary>How grade and responsiveness are made</summary>
        <p>{first.gradeMethod}</p>
        <p>{first.roundTripsPerMinuteMethod}</p>
      </details>
    </>
  );
}
