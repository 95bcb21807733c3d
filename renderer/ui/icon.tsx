const paths = {
  devices: 'M3 5h14v8H3z M7 16h6 M10 13v3',
  compare: 'M3 4h6v5H3z M11 4h6v5h-6z M3 11h6v5H3z M11 11h6v5h-6z',
  experiment: 'M8 3h4 M9 3v5l-5 9h12l-5-9V3 M6.5 12.5h7',
  recordings: 'M5 3h7l3 3v11H5z M12 3v3h3 M8 10h4 M8 13h4',
  settings: 'M4 6h7 M14 6h2 M11 4v4 M4 10h2 M9 10h7 M6 8v4 M4 14h9 M16 14h0 M13 12v4',
  help: 'M7.5 7.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8 M10 14.5v.1 M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15z',
  pause: 'M7 5v10 M13 5v10',
  play: 'M7 4.5v11l8-5.5z',
  left: 'M12 5l-5 5 5 5',
  right: 'M8 5l5 5-5 5',
  close: 'M5 5l10 10 M15 5L5 15',
  check: 'M4.5 10.5l3.5 3.5 7.5-8',
  copy: 'M7 7h9v9H7z M13 7V4H4v9h3',
  warning: 'M10 3.5l7.5 13h-15z M10 8.5v4 M10 14.5v.1',
} as const;

export type IconName = keyof typeof paths;

/** A drawing of 20 by 20; what it means is said by the element around it. */
export function Icon({ name, size = 20 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
