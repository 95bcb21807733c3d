import { hint } from './hint.tsx';

interface SegmentedProps<T> {
  /** What is chosen here, for screen readers. */
  readonly label: string;
  readonly choices: readonly { readonly value: T; readonly label: string; readonly hint: string }[];
  readonly value: T;
  readonly onChoose: (value: T) => void;
}

/** One of a few, all in sight. */
export function Segmented<T extends string | number>(props: SegmentedProps<T>) {
  return (
    <div class="segmented" role="group" aria-label={props.label}>
      {props.choices.map((choice) => (
        <button
          type="button"
          key={choice.value}
          aria-pressed={choice.value === props.value}
          onClick={() => props.onChoose(choice.value)}
          {...hint(choice.hint)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}
