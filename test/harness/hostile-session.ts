import { recordSyntheticSession } from './synthetic-session.ts';

/** A text that would do harm wherever it is taken for anything else than text. */
export const hostileText =
  `</style></title><script>document.title = 'owned'</script><img src=x onerror="document.title='owned'">` +
  `" onload='x' style="color:red" {{7*7}} &amp; \u202e\u0000 ' OR 1=1; -- =HYPERLINK("http://example.invalid")`;

/** Records a short session in which every text that comes from outside is hostile. */
export function recordHostileSession(path: string): void {
  const text = hostileText;
  recordSyntheticSession(path, {
    phases: [
      { seconds: 4, bql: false, load: true },
      { seconds: 4, bql: true, load: true },
    ],
    device: { id: text, name: text, manufacturer: text, minidriver: text, reason: text, description: text },
    session: {
      id: text,
      stages: [{ name: 'open', status: 'failed', text }],
      facts: [{ group: 'device', name: text, value: text }],
      problems: [{ id: text, severity: 'error', message: text, remedy: text }],
    },
    entries: [
      { type: 'event', event: { timeUs: 1e6, kind: 'note', text } },
      {
        type: 'phase-start',
        phase: { name: text, bqlEnabled: true, loadEnabled: true, loadRateBitsPerSecond: 0, startUs: 6e6 },
      },
    ],
  });
}
