import { useId } from 'preact/hooks';
import { hint } from './hint.tsx';

interface SelectFieldProps<T extends string> {
  readonly label: string;
  readonly hint: string;
  readonly choices: readonly { readonly value: T; readonly label: string }[];
  readonly value: T;
  readonly onChoose: (value: T) => void;
}

/** One of a few, by name. */
export function SelectField<T extends string>(props: SelectFieldProps<T>) {
  const { choices, value } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <span class="field-box">
        <select
          id={id}
          value={value}
          onChange={(event) => {
            const chosen = choices[event.currentTarget.selectedIndex]?.value;
            if (chosen !== undefined && chosen !== value) props.onChoose(chosen);
          }}
          {...hint(props.hint)}
        >
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      </span>
    </div>
  );
}
