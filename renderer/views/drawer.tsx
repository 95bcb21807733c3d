import { faultWords } from '../../src/contract/fault-words.ts';
import type { Fact, Session } from '../../src/contract/session.ts';
import { faultColumns } from '../../src/contract/telemetry.ts';
import { formatCount, formatDuration, formatElapsed } from '../../src/base/units.ts';
import { useApp } from '../app-context.ts';
import { reportKey } from '../store/app-store.ts';
import { type DeviceEntry, isLive } from '../store/device-entry.ts';
import { hint } from '../ui/hint.tsx';
import { IconButton } from '../ui/icon-button.tsx';
import { Controls, QueueArithmetic } from './controls.tsx';
import { Failure } from './problem-list.tsx';
import { aboutWindow } from './readings-view.tsx';
import { ReportButtons } from './report-buttons.tsx';

/** What can be changed about a device, and what is known about it. */
export function Drawer({ entry }: { readonly entry: DeviceEntry }) {
  const { store } = useApp();
  const { session } = entry;
  return (
    <aside class="drawer" aria-label="Controls and facts">
      <header class="panel-header">
        <h2>{isLive(session) ? 'Controls' : 'Settings of the next session'}</h2>
        <IconButton
          icon="right"
          label="Close the controls"
          onClick={() => {
            store.preferences.drawerOpen.value = false;
          }}
        />
      </header>
      <div class="panel-body">
        <Controls entry={entry} />
        <QueueArithmetic entry={entry} />
        {session === undefined ? null : <SessionFacts session={session} />}
      </div>
    </aside>
  );
}

function SessionFacts({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const events = store.engine.dataOf(session.id).events.value;
  return (
    <>
      {session.recording === undefined ? null : (
        <section>
          <h3>Report</h3>
          <ReportButtons recordingId={session.recording.id} />
          <Failure error={store.failures.value.get(reportKey(session.recording.id))} />
        </section>
      )}
      <Validity session={session} />
      <Faults session={session} />
      {groups.map(({ group, title }) => (
        <FactGroup key={group} title={title} facts={session.facts.filter((fact) => fact.group === group)} />
      ))}
      {events.length === 0 ? null : (
        <section>
          <h3>Events</h3>
          <ol class="events">
            {events
              .slice(-shownEvents)
              .toReversed()
              .map((event) => (
                <li key={`${event.timeUs} ${event.kind} ${event.text}`}>
                  <span class="event-time">{formatElapsed(event.timeUs, true)}</span> {event.text}
                </li>
              ))}
          </ol>
        </section>
      )}
    </>
  );
}

/** How far what is measured can be trusted, and what was lost on the way to this window. */
function Validity({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const now = store.readingsOf(session).value?.now;
  const skippedRows = store.engine.dataOf(session.id).skippedRows.value;
  if (now === undefined) return null;
  return (
    <section>
      <h3>Measurement</h3>
      <dl class="facts">
        <div
          {...hint(
            'The longest that the engine’s own event loop was late. Latencies are no more exact than this.',
          )}
        >
          <dt>Own delay</dt>
          <dd>{formatDuration(now.eventLoopLagMaxUs)} at most</dd>
        </div>
        <div
          {...hint(
            'Packets that a full queue, or fq_codel, dropped. Under a load without a target rate this is as it should be.',
          )}
        >
          <dt>Dropped</dt>
          <dd>{formatCount(now.droppedPackets)} packets</dd>
        </div>
        {now.markedPackets === 0 ? null : (
          <div {...hint('Packets that fq_codel marked in place of dropping them: their senders speak ECN.')}>
            <dt>Marked</dt>
            <dd>{formatCount(now.markedPackets)} packets</dd>
          </div>
        )}
        {skippedRows === 0 ? null : (
          <div {...hint('This window did not keep up. The charts have gaps there; the recording does not.')}>
            <dt>Not shown</dt>
            <dd>{formatCount(skippedRows)} rows</dd>
          </div>
        )}
      </dl>
      <p class="quiet">Over {aboutWindow(store.readingsOf(session).value)}.</p>
    </section>
  );
}

/** What has gone wrong with the device so far, by code; what has not is left out. */
function Faults({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const counts = store.engine.dataOf(session.id).faults.value;
  if (!counts.some((count) => count >= 0)) return null;
  const counted = faultColumns.flatMap((fault, i) => {
    const count = counts[i] ?? 0;
    return count > 0 ? [{ ...faultWords[fault], fault, count }] : [];
  });
  return (
    <section>
      <h3>Faults</h3>
      {counted.length === 0 ? (
        <p class="quiet">No transfer has failed.</p>
      ) : (
        <dl class="facts">
          {counted.map(({ fault, title, hint: words, count }) => (
            <div key={fault} {...hint(words)}>
              <dt>{title}</dt>
              <dd>{formatCount(count)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

const shownEvents = 100;

const groups: readonly { group: Fact['group']; title: string }[] = [
  { group: 'queue', title: 'Queue' },
  { group: 'driver', title: 'Driver' },
  { group: 'device', title: 'Device' },
  { group: 'network', title: 'Network' },
];

function FactGroup({ title, facts }: { readonly title: string; readonly facts: readonly Fact[] }) {
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <dl class="facts">
        {facts.map((fact) => (
          <div key={fact.name}>
            <dt>{fact.name}</dt>
            <dd>{fact.value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
