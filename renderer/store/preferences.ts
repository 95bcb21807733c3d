import { effect, type Signal, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const themes: readonly Theme[] = ['system', 'light', 'dark'];

/** What a person chose for this window, kept between visits. */
export class Preferences {
  readonly theme: Signal<Theme>;
  /** Larger targets, for fingers. */
  readonly touch: Signal<boolean>;
  /** Shortcuts of a single key; off for those whom they surprise (dictation, a cat). */
  readonly shortcuts: Signal<boolean>;
  readonly listOpen: Signal<boolean>;
  readonly drawerOpen: Signal<boolean>;

  /** @param storage undefined: nothing is kept */
  constructor(storage: Pick<Storage, 'getItem' | 'setItem'> | undefined, window: { readonly wide: boolean }) {
    const saved = read(storage);
    this.theme = signal(themes.find((theme) => theme === saved['theme']) ?? 'system');
    this.touch = signal(saved['touch'] === true);
    this.shortcuts = signal(saved['shortcuts'] !== false);
    // In a narrow window the side panels lie over the charts: it starts without them, whatever a wide one had.
    this.listOpen = signal(window.wide && saved['listOpen'] !== false);
    this.drawerOpen = signal(window.wide && saved['drawerOpen'] !== false);
    effect(() => {
      const text = JSON.stringify({
        theme: this.theme.value,
        touch: this.touch.value,
        shortcuts: this.shortcuts.value,
        listOpen: window.wide ? this.listOpen.value : saved['listOpen'],
        drawerOpen: window.wide ? this.drawerOpen.value : saved['drawerOpen'],
      });
      try {
        storage?.setItem(storageKey, text);
      } catch {
        // Storage is full or forbidden: the choice lasts as long as the window.
      }
    });
  }
}

const storageKey = 'queuescope.preferences';

function read(storage: Pick<Storage, 'getItem'> | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(storage?.getItem(storageKey) ?? '{}');
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
