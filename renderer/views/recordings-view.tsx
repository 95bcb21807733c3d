import { useEffect } from 'preact/hooks';
import { formatBytes, formatElapsed } from '../../src/base/units.ts';
import { useApp } from '../app-context.ts';
import { reportKey } from '../store/app-store.ts';
import { Failure } from './problem-list.tsx';
import { ReportButtons } from './report-buttons.tsx';

const refreshMs = 5000;

/** What was recorded on this machine, newest first, and the reports of it. */
export function RecordingsView() {
  const { store } = useApp();
  useEffect(() => {
    void store.listRecordings();
    const timer = window.setInterval(() => void store.listRecordings(), refreshMs);
    return () => window.clearInterval(timer);
  }, [store]);
  const recordings = store.recordings.value;
  return (
    <div class="page">
      <h1>Recordings</h1>
      <Failure error={store.failures.value.get('recordings')} />
      {recordings === undefined ? <p class="quiet">Looking …</p> : null}
      {recordings?.length === 0 ? (
        <p>Nothing is recorded yet. A session with Record on writes its file while it runs.</p>
      ) : null}
      {recordings === undefined || recordings.length === 0 ? null : (
        <table class="recordings">
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col">Started</th>
              <th scope="col" class="number">
                Length
              </th>
              <th scope="col" class="number">
                Size
              </th>
              <th scope="col">File</th>
              <th scope="col">Report</th>
            </tr>
          </thead>
          <tbody>
            {[...recordings]
              .sort((a, b) => b.startedAt.localeCompare(a.startedAt))
              .map((recording) => (
                <tr key={recording.id}>
                  <td>
                    {recording.deviceName}
                    {recording.recording ? (
                      <span class="recording-chip recording-running">Recording</span>
                    ) : null}
                  </td>
                  <td>{new Date(recording.startedAt).toLocaleString()}</td>
                  <td class="number">{formatElapsed(recording.durationUs)}</td>
                  <td class="number">{formatBytes(recording.sizeBytes)}</td>
                  <td class="mono file-name">{recording.fileName}</td>
                  <td>
                    <ReportButtons recordingId={recording.id} />
                    <Failure error={store.failures.value.get(reportKey(recording.id))} />
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
