import { z } from 'zod';

/** A lasting fault. It is state, not an event: shown until cured, then withdrawn. */
export const problemSchema = z.object({
  /** Stable within its device: the same fault found again is the same problem. */
  id: z.string(),
  severity: z.enum(['info', 'warning', 'error']),
  /** What is wrong, one sentence. */
  message: z.string(),
  /** What to do about it; commands stand on lines of their own. */
  remedy: z.string().optional(),
});
export type Problem = z.infer<typeof problemSchema>;
