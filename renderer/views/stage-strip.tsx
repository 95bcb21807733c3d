import type { Session, Stage, StageName } from '../../src/contract/session.ts';
import { stageWords } from '../store/device-entry.ts';
import { hint } from '../ui/hint.tsx';
import { Icon } from '../ui/icon.tsx';

const explanations: Readonly<Record<StageName, string>> = {
  open: 'The USB device is opened and its interfaces are claimed.',
  bind: 'The minidriver sets the device up.',
  carrier: 'The device says that its link is up.',
  address: 'The interface gets its IP address.',
  target: 'The far end that ping and load go to answers.',
  measure: 'Ping and load run, samples are taken.',
};

/** Where the kernel keeps the device, these happen otherwise. */
const observedExplanations: Readonly<Partial<Record<StageName, string>>> = {
  open: 'The interface is looked up.',
  bind: 'The kernel’s driver has the device.',
  address: 'The system gives the interface its IP address.',
  target: 'The far end that the pings go to answers.',
  measure: 'The kernel’s files are read, the system’s ping runs.',
};

function explain(session: Session, stage: Stage): string {
  const observed = session.device.mode === 'observe' ? observedExplanations[stage.name] : undefined;
  const explanation = observed ?? explanations[stage.name];
  return stage.text === undefined ? explanation : `${explanation} ${stage.text}`;
}

const statusWords: Readonly<Record<Stage['status'], string>> = {
  pending: 'not yet',
  active: 'now',
  done: 'done',
  failed: 'failed',
};

/** The way from the device to the measurement, and how far it has come. */
export function StageStrip({ session }: { readonly session: Session }) {
  const isOnTheWay = session.state === 'starting';
  return (
    <ol class="stages" aria-label="Stages">
      {session.stages.map((stage) => (
        <li
          key={stage.name}
          class={`stage stage-${stage.status === 'active' && !isOnTheWay ? 'current' : stage.status}`}
          {...hint(explain(session, stage))}
        >
          <span class="stage-mark" aria-hidden="true">
            {stage.status === 'done' ? <Icon name="check" size={14} /> : null}
            {stage.status === 'failed' ? <Icon name="close" size={14} /> : null}
          </span>
          <span class="stage-name">{stageWords[stage.name]}</span>
          <span class="visually-hidden">{statusWords[stage.status]}</span>
          {stage.text === undefined ? null : <span class="stage-text">{stage.text}</span>}
        </li>
      ))}
    </ol>
  );
}
