import { useId, useState } from 'preact/hooks';
import { formatCount } from '../../src/base/units.ts';
import { hint } from './hint.tsx';

interface NumberFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly unit: string;
  /** In the unit that is shown. */
  readonly value: number;
  readonly min: number;
  readonly max: number;
  /** Whole numbers only. */
  readonly whole?: boolean;
  /** A value that is shown as an empty field with this word in it, and that an empty field means. */
  readonly empty?: { readonly value: number; readonly word: string };
  /** What the value means, below the field. */
  readonly meaning?: string;
  readonly onChange: (value: number) => void;
}

/** A number that takes effect with Enter or on leaving; Escape takes back what was typed. */
export function NumberField(props: NumberFieldProps) {
  const id = useId();
  const [draft, setDraft] = useState<string>();
  const [complaint, setComplaint] = useState<string>();
  const shown = draft ?? (props.value === props.empty?.value ? '' : String(props.value));

  const commit = (): void => {
    if (draft === undefined) return;
    const value = parse(draft, props);
    if (typeof value === 'string') {
      setComplaint(value);
      return;
    }
    setComplaint(undefined);
    setDraft(undefined);
    if (value !== props.value) props.onChange(value);
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') commit();
    if (event.key === 'Escape') {
      setDraft(undefined);
      setComplaint(undefined);
    }
  };
  const below = complaint ?? props.meaning;

  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <span class="field-box">
        <input
          id={id}
          inputMode="decimal"
          autocomplete="off"
          spellcheck={false}
          value={shown}
          placeholder={props.empty?.word ?? ''}
          aria-invalid={complaint !== undefined}
          aria-describedby={below === undefined ? undefined : `${id}-below`}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onBlur={commit}
          onKeyDown={handleKey}
          {...hint(props.hint)}
        />
        <span class="field-unit">{props.unit}</span>
      </span>
      {below === undefined ? null : (
        <span id={`${id}-below`} class={complaint === undefined ? 'field-below' : 'field-below complaint'}>
          {below}
        </span>
      )}
    </div>
  );
}

/** The number that was typed, or what is wrong with it. */
function parse(text: string, { empty, min, max, whole, unit }: NumberFieldProps): number | string {
  const digits = text.trim().replaceAll(',', '');
  if (digits === '') return empty?.value ?? `A number is needed, in ${unit}.`;
  const value = Number(digits);
  if (!Number.isFinite(value)) return 'This is not a number.';
  if (whole === true && !Number.isInteger(value)) return 'Only whole numbers.';
  if (value < min || value > max) return `From ${formatCount(min)} to ${formatCount(max)} ${unit}.`;
  return value;
}
