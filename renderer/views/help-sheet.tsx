import { useEffect, useRef } from 'preact/hooks';
import { IconButton } from '../ui/icon-button.tsx';
import { shortcuts } from './shortcuts.ts';

interface HelpSheetProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

/** The keys, over everything else. */
export function HelpSheet({ open, onClose }: HelpSheetProps) {
  const sheet = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) sheet.current?.showModal();
    else sheet.current?.close();
  }, [open]);
  return (
    <dialog
      ref={sheet}
      class="help-sheet"
      aria-label="Keyboard shortcuts"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === sheet.current) onClose();
      }}
    >
      <header class="panel-header">
        <h2>Keyboard</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <dl class="shortcut-list">
        {shortcuts.map(({ keys, words }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        Everything can be reached with Tab. Keys of a single letter can be switched off in Settings.
      </p>
    </dialog>
  );
}
