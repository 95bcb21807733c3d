import { useState } from 'preact/hooks';
import type { Session } from '../../src/contract/session.ts';
import { useApp } from '../app-context.ts';
import { hint } from '../ui/hint.tsx';

/** One line that is put into the recording at the time it is entered. */
export function NoteField({ session }: { readonly session: Session }) {
  const { store } = useApp();
  const [text, setText] = useState('');
  const add = async (): Promise<void> => {
    const trimmed = text.trim();
    if (trimmed !== '' && (await store.note(session, trimmed))) setText('');
  };
  return (
    <span class="note-field">
      <input
        id="note"
        type="text"
        maxLength={500}
        placeholder="Add a note"
        aria-label="Note"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') void add();
          if (event.key === 'Escape') event.currentTarget.blur();
        }}
        {...hint(
          'A mark with these words at this moment, in the charts and in the recording (n, then Enter).',
        )}
      />
    </span>
  );
}
