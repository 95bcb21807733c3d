import { useEffect } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { experimentKey, isUnderWay } from '../store/app-store.ts';
import { ExperimentProgress } from './experiment-progress.tsx';
import { ExperimentSetup } from './experiment-setup.tsx';
import { Failure } from './problem-list.tsx';
import { VerdictView } from './verdict-view.tsx';

/** One question, one button: choose a scenario, watch it run, read the verdict. */
export function ExperimentView() {
  const { store } = useApp();
  useEffect(() => {
    void store.listScenarios();
  }, [store]);
  const shownId = store.shownExperiment.value;
  const status = shownId === undefined ? undefined : store.engine.experiments.value.get(shownId);
  const choose = (): void => {
    store.shownExperiment.value = undefined;
  };
  return (
    <div class="page experiment">
      <header class="experiment-header">
        <h1>Experiment</h1>
        <span class="space" />
        {status === undefined ? null : (
          <button type="button" class="button small" onClick={choose}>
            {isUnderWay(status) ? 'Start another' : 'New experiment'}
          </button>
        )}
      </header>
      <Failure error={store.failures.value.get('scenarios')} />
      <Failure error={store.failures.value.get(experimentKey)} />
      {status === undefined ? (
        <ExperimentSetup />
      ) : isUnderWay(status) ? (
        <ExperimentProgress status={status} />
      ) : (
        <VerdictView status={status} />
      )}
    </div>
  );
}
