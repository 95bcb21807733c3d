import { useState } from 'preact/hooks';
import type { AppError } from '../../src/base/errors.ts';
import { errorTable } from '../../src/base/errors.ts';
import type { Problem } from '../../src/contract/problem.ts';
import { Icon } from '../ui/icon.tsx';

/** Faults that last, each with its cure. They stay until they are cured. */
export function ProblemList({ problems }: { readonly problems: readonly Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems" aria-label="Problems">
      {problems.map((problem) => (
        <li key={problem.id} class={`problem problem-${problem.severity}`}>
          <Icon name="warning" />
          <div>
            <p class="problem-message">{problem.message}</p>
            {problem.remedy === undefined ? null : <Remedy text={problem.remedy} />}
          </div>
        </li>
      ))}
    </ul>
  );
}

/** A request that failed, in the same shape as a problem; it goes when the request is made again with success. */
export function Failure({ error }: { readonly error: AppError | undefined }) {
  if (error === undefined) return null;
  return (
    <div class="problem problem-error" role="alert">
      <Icon name="warning" />
      <div>
        <p class="problem-message">
          {errorTable[error.kind].title}: {error.message}
        </p>
        {error.remedy === undefined ? null : <Remedy text={error.remedy} />}
      </div>
    </div>
  );
}

/** The first line is a sentence; lines of their own after it are commands, to be copied as they are. */
function Remedy({ text }: { readonly text: string }) {
  const [sentence = '', ...rest] = text.split('\n');
  const command = rest.join('\n').trim();
  return (
    <>
      <p class="remedy">{sentence}</p>
      {command === '' ? null : <Command text={command} />}
    </>
  );
}

function Command({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      // Not allowed here: the text can still be marked and copied by hand.
      () => setCopied(false),
    );
  };
  return (
    <div class="command">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" class="button small" onClick={copy}>
        <Icon name="copy" size={16} /> {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
