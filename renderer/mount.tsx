import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { AppContext, type AppParts } from './app-context.ts';
import { Crosshair } from './charts/chart-stack.ts';
import { readColours } from './charts/colours.ts';
import { FrameLoop } from './charts/frame-loop.ts';
import type { EngineLink } from './engine-link.ts';
import { AppStore } from './store/app-store.ts';
import { Preferences } from './store/preferences.ts';
import { App } from './views/app.tsx';

/** 20 frames a second at most: as often as samples come, and all that an eye can read off a chart. */
const frameIntervalMs = 50;
/** While nothing comes from a session that should be sending, its gap still grows. */
const heartbeatMs = 250;
/** As in styles/frame.css. */
const wideWindow = '(min-width: 1100px)';

/** Puts the app into an element of the page. @returns what it is made of, and a way to take it out again */
export function mount(root: HTMLElement, link: EngineLink): AppParts & { unmount: () => void } {
  const loop = new FrameLoop(frameIntervalMs);
  const wide = matchMedia(wideWindow);
  const preferences = new Preferences(openStorage(), { wide: wide.matches });
  const followWidth = (): void => preferences.setWide(wide.matches);
  wide.addEventListener('change', followWidth);
  const store = new AppStore(
    link,
    preferences,
    () => performance.now(),
    () => loop.request(),
  );
  const crosshair = new Crosshair(() => loop.requestNow());
  const colours = signal(readColours(document.body));
  const systemDark = matchMedia('(prefers-color-scheme: dark)');
  const rereadColours = (): void => {
    colours.value = readColours(document.body);
  };
  systemDark.addEventListener('change', rereadColours);
  const stopTheme = effect(() => {
    const { dataset } = document.documentElement;
    const theme = preferences.theme.value;
    if (theme === 'system') delete dataset['theme'];
    else dataset['theme'] = theme;
    if (preferences.touch.value) dataset['touch'] = '';
    else delete dataset['touch'];
    rereadColours();
  });
  const stopTicking = loop.add({ draw: () => store.tick() });
  const stopViewing = effect(() => {
    // What part of time is shown is read inside of a frame; a change of it asks for one.
    void store.view.windowSeconds.value;
    void store.view.frozenEnds.value;
    loop.requestNow();
  });
  const heartbeat = window.setInterval(() => {
    if (store.liveEntries.peek().length > 0) loop.request();
  }, heartbeatMs);

  const parts: AppParts = { store, loop, crosshair, colours };
  render(
    <AppContext.Provider value={parts}>
      <App />
    </AppContext.Provider>,
    root,
  );
  return {
    ...parts,
    unmount() {
      render(null, root);
      window.clearInterval(heartbeat);
      stopViewing();
      stopTicking();
      stopTheme();
      wide.removeEventListener('change', followWidth);
      systemDark.removeEventListener('change', rereadColours);
    },
  };
}

function openStorage(): Storage | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}
