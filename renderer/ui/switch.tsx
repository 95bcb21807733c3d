import { hint } from './hint.tsx';

interface SwitchProps {
  readonly label: string;
  readonly hint: string;
  readonly on: boolean;
  readonly disabled?: boolean;
  readonly onToggle: (on: boolean) => void;
}

/** On or off, at once. The word stands beside it, so colour is never all that tells. */
export function Switch(props: SwitchProps) {
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-checked={props.on}
      disabled={props.disabled === true}
      onClick={() => props.onToggle(!props.on)}
      {...hint(props.hint)}
    >
      <span class="switch-label">{props.label}</span>
      <span class="switch-word">{props.on ? 'on' : 'off'}</span>
      <span class="switch-track" aria-hidden="true">
        <span class="switch-thumb" />
      </span>
    </button>
  );
}
