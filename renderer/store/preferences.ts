import { batch, effect, type Signal, signal } from '@preact/signals';

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

  /** Side panels stand beside the charts; in a narrow window they lie over them, one at a time. */
  readonly #wide: Signal<boolean>;
  /** What is open in a wide window. */
  #listOpenWide: boolean;
  #drawerOpenWide: boolean;

  /** @param storage undefined: nothing is kept */
  constructor(storage: Pick<Storage, 'getItem' | 'setItem'> | undefined, window: { readonly wide: boolean }) {
    const saved = read(storage);
    this.theme = signal(themes.find((theme) => theme === saved['theme']) ?? 'system');
    this.touch = signal(saved['touch'] === true);
    this.shortcuts = signal(saved['shortcuts'] !== false);
    this.#listOpenWide = saved['listOpen'] !== false;
    this.#drawerOpenWide = saved['drawerOpen'] !== false;
    this.#wide = signal(window.wide);
    this.listOpen = signal(window.wide && this.#listOpenWide);
    this.drawerOpen = signal(window.wide && this.#drawerOpenWide);
    effect(() => {
      const listOpen = this.listOpen.value;
      const drawerOpen = this.drawerOpen.value;
      if (this.#wide.value) {
        this.#listOpenWide = listOpen;
        this.#drawerOpenWide = drawerOpen;
      }
      const text = JSON.stringify({
        theme: this.theme.value,
        touch: this.touch.value,
        shortcuts: this.shortcuts.value,
        listOpen: this.#listOpenWide,
        drawerOpen: this.#drawerOpenWide,
      });
      try {
        storage?.setItem(storageKey, text);
      } catch {
        // Storage is full or forbidden: the choice lasts as long as the window.
      }
    });
    this.#keepOneOpen(this.listOpen, this.drawerOpen);
    this.#keepOneOpen(this.drawerOpen, this.listOpen);
  }

  /** The window has become wide or narrow: what lay beside the charts must not lie over them. */
  setWide(wide: boolean): void {
    if (wide === this.#wide.peek()) return;
    batch(() => {
      this.#wide.value = wide;
      this.listOpen.value = wide && this.#listOpenWide;
      this.drawerOpen.value = wide && this.#drawerOpenWide;
    });
  }

  /** In a narrow window opening one panel closes the other. */
  #keepOneOpen(opened: Signal<boolean>, other: Signal<boolean>): void {
    opened.subscribe((isOpen) => {
      if (isOpen && !this.#wide.peek()) other.value = false;
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
