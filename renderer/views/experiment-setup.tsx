import { useId, useState } from 'preact/hooks';
import { formatBytes } from '../../src/base/units.ts';
import type { ScenarioSummary } from '../../src/contract/experiment.ts';
import { useApp } from '../app-context.ts';
import { experimentKey, isUnderWay } from '../store/app-store.ts';
import { isLive } from '../store/device-entry.ts';
import { hint } from '../ui/hint.tsx';
import { NumberField } from '../ui/number-field.tsx';
import { Switch } from '../ui/switch.tsx';
import { lengthWords } from './length-words.ts';

/** What a link of this rate would carry is told, to give an idea. */
const exampleBitsPerSecond = 10e6;
const megabyte = 1e6;

/** Which device, which scenario, how much data at most; and the button. */
export function ExperimentSetup() {
  const deviceFieldId = useId();
  const { store } = useApp();
  const [chosenDevice, setDevice] = useState<string>();
  const [chosenScenario, setScenario] = useState<string>();
  const [capMegabytes, setCap] = useState(0);
  const scenarios = store.scenarios.value;
  const ready = store.engine.entries.value.filter(
    ({ device, session }) => device.state === 'available' && device.mode !== 'observe' && !isLive(session),
  );
  const selected = chosenDevice ?? store.selectedId.value;
  const device = (ready.find((entry) => entry.device.id === selected) ?? ready[0])?.device;
  const scenario = scenarios?.find(({ name }) => name === chosenScenario) ?? scenarios?.[0];
  const running = [...store.engine.experiments.value.values()].filter(isUnderWay);
  const isBusy = store.pending.value.has(experimentKey);

  return (
    <form
      class="experiment-setup"
      onSubmit={(event) => {
        event.preventDefault();
        if (device === undefined || scenario === undefined) return;
        void store.startExperiment(
          device.id,
          scenario.name,
          capMegabytes === 0 ? undefined : capMegabytes * megabyte,
        );
      }}
    >
      <p class="quiet experiment-lead">
        Is this device’s queue hurting, how much, and does BQL fix it without costing throughput? Settings
        take turns in short segments beside each other, so that the answer survives a radio that changes.
      </p>
      {running.map((status) => (
        <p key={status.sessionId}>
          {status.scenario} is running.{' '}
          <button
            type="button"
            class="link"
            onClick={() => {
              store.shownExperiment.value = status.sessionId;
            }}
          >
            Show it
          </button>
        </p>
      ))}
      <fieldset class="scenarios">
        <legend>Scenario</legend>
        {scenarios === undefined ? <p class="quiet">Looking …</p> : null}
        {scenarios?.map((one) => (
          <ScenarioChoice
            key={one.name}
            scenario={one}
            isVirtual={device?.mode === 'simulate'}
            isChosen={one.name === scenario?.name}
            onChoose={() => setScenario(one.name)}
          />
        ))}
      </fieldset>
      <div class="experiment-start">
        <div class="field">
          <label for={deviceFieldId}>Device</label>
          <span class="field-box">
            <select
              id={deviceFieldId}
              value={device?.id ?? ''}
              disabled={ready.length === 0}
              onChange={(event) => setDevice(event.currentTarget.value)}
            >
              {ready.length === 0 ? <option value="">none is free</option> : null}
              {ready.map((entry) => (
                <option key={entry.device.id} value={entry.device.id}>
                  {entry.device.name}
                </option>
              ))}
            </select>
          </span>
        </div>
        <NumberField
          label="Data, at most"
          hint="Sent and received together. What would go beyond ends the experiment; what was measured is kept."
          unit="MB"
          value={capMegabytes}
          min={1}
          max={1_000_000}
          empty={{ value: 0, word: scenario?.maxDataBytes === undefined ? 'no cap' : 'as the scenario' }}
          onChange={setCap}
        />
        {device === undefined ? null : (
          <Switch
            label="Record"
            hint="Write everything that is measured into a .qscope file; a report needs it."
            on={store.drafts.of(device.id).record}
            onToggle={(record) => store.drafts.setRecord(device.id, record)}
          />
        )}
        <button
          type="submit"
          class="button primary large"
          disabled={isBusy || device === undefined || scenario === undefined}
          {...hint('Takes the device, waits for its link and address, then runs the scenario.')}
        >
          {isBusy ? 'Starting …' : `Run ${scenario?.name ?? ''}`}
        </button>
      </div>
    </form>
  );
}

interface ScenarioChoiceProps {
  readonly scenario: ScenarioSummary;
  readonly isVirtual: boolean;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function ScenarioChoice({ scenario, isVirtual, isChosen, onChoose }: ScenarioChoiceProps) {
  const id = useId();
  const { name, description, seconds, segments, arms, calibration, withoutTap } = scenario;
  return (
    <label class={isChosen ? 'scenario chosen' : 'scenario'}>
      <input
        type="radio"
        name="scenario"
        value={name}
        checked={isChosen}
        onChange={onChoose}
        aria-labelledby={`${id}-name`}
        aria-describedby={`${id}-words`}
      />
      <span class="scenario-words" id={`${id}-words`}>
        <span class="scenario-head">
          <b id={`${id}-name`}>{name}</b>
          <span class="quiet">
            {lengthWords(seconds)}, {segments} segments, {volumeWords(scenario, isVirtual)}
          </span>
        </span>
        <span>{description}</span>
        <span class="quiet">{arms.join(' against ')}</span>
        {calibration === undefined ? null : <span class="scenario-note">Fitted: {calibration}</span>}
        {withoutTap === undefined ? null : (
          <span class="scenario-note">Without a TAP interface: {withoutTap}.</span>
        )}
      </span>
    </label>
  );
}

/** What it sends and receives: no more than its cap, else what the link takes. */
function volumeWords({ maxDataBytes, seconds }: ScenarioSummary, isVirtual: boolean): string {
  if (isVirtual) return 'no real data';
  if (maxDataBytes !== undefined) return `at most ${formatBytes(maxDataBytes)}`;
  return `up to ${formatBytes((seconds * exampleBitsPerSecond) / 8)} at 10 Mbit/s`;
}
