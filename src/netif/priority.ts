/**
 * Linux's packet priorities (`TC_PRIO_*`) and how they follow from an IPv4 TOS byte (`rt_tos2priority`, spec 4.2).
 */
export const priorities = {
  bestEffort: 0,
  filler: 1,
  bulk: 2,
  interactiveBulk: 4,
  interactive: 6,
  control: 7,
} as const;

/** Indexed by (TOS & 0x1e) >> 1. */
const priorityOfTos = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];

/** The priority a socket with this TOS byte sends at. */
export function tosPriority(tos: number): number {
  return priorityOfTos[(tos & 0x1e) >> 1] ?? priorities.bestEffort;
}
