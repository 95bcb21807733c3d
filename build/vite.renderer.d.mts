import type { InlineConfig } from 'vite';

export function rendererConfig(options: { readonly root: string; readonly outFolder: string }): InlineConfig;
