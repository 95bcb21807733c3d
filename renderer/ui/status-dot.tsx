import type { Status } from '../store/device-entry.ts';

/** A state as a dot and a word; the shape differs too, for those who do not see the colour. */
export function StatusDot({ status }: { readonly status: Status }) {
  return (
    <span class={`status status-${status.tone}`}>
      <span class="status-dot" aria-hidden="true" />
      {status.word}
    </span>
  );
}
