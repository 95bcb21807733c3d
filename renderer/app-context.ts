import type { ReadonlySignal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { invariant } from '../src/base/errors.ts';
import type { Crosshair } from './charts/chart-stack.ts';
import type { ChartColours } from './charts/colours.ts';
import type { FrameLoop } from './charts/frame-loop.ts';
import type { AppStore } from './store/app-store.ts';

/** What every view may use. */
export interface AppParts {
  readonly store: AppStore;
  readonly loop: FrameLoop;
  readonly crosshair: Crosshair;
  readonly colours: ReadonlySignal<ChartColours>;
}

export const AppContext = createContext<AppParts | undefined>(undefined);

export function useApp(): AppParts {
  const parts = useContext(AppContext);
  invariant(parts !== undefined, 'a view stands outside of the app');
  return parts;
}
