import { hint } from './hint.tsx';
import { Icon, type IconName } from './icon.tsx';

interface IconButtonProps {
  readonly icon: IconName;
  readonly label: string;
  /** Beyond the label; without one the label is shown. */
  readonly hint?: string;
  readonly pressed?: boolean;
  readonly onClick: () => void;
}

export function IconButton(props: IconButtonProps) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={props.label}
      {...(props.pressed === undefined ? {} : { 'aria-pressed': props.pressed })}
      onClick={props.onClick}
      {...(props.hint === undefined ? { 'data-hint': props.label } : hint(props.hint))}
    >
      <Icon name={props.icon} />
    </button>
  );
}
