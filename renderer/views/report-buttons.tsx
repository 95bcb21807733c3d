import { useApp } from '../app-context.ts';
import { reportKey, type ReportFormat } from '../store/app-store.ts';
import { download } from '../ui/download.ts';
import { hint } from '../ui/hint.tsx';

const formats: readonly { format: ReportFormat; label: string; hint: string }[] = [
  { format: 'html', label: 'HTML', hint: 'One page with charts and tables, readable without Queuescope.' },
  {
    format: 'pdf',
    label: 'PDF',
    hint: 'The same on pages of paper; needs a Chromium, Chrome or Edge on the machine that Queuescope runs on.',
  },
  { format: 'csv', label: 'CSV', hint: 'Every sample as a line of a table.' },
  { format: 'json', label: 'JSON', hint: 'Everything that was recorded, for programs.' },
  {
    format: 'flent',
    label: 'Flent',
    hint: 'Data files for the network tester Flent: the whole recording, and one for each arm of an experiment.',
  },
];

/** Makes a report of a recording and hands it over as a file. */
export function ReportButtons({ recordingId }: { readonly recordingId: string }) {
  const { store } = useApp();
  const isBusy = store.pending.value.has(reportKey(recordingId));
  const make = async (format: ReportFormat): Promise<void> => {
    const files = await store.createReport(recordingId, format);
    for (const file of files ?? []) download(file);
  };
  return (
    <span class="report-buttons" role="group" aria-label="Report">
      {formats.map(({ format, label, hint: text }) => (
        <button
          type="button"
          key={format}
          class="button small"
          disabled={isBusy}
          onClick={() => void make(format)}
          {...hint(text)}
        >
          {label}
        </button>
      ))}
      {isBusy ? <span class="quiet">Working …</span> : null}
    </span>
  );
}
