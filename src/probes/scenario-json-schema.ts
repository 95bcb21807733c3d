import { z } from 'zod';
import { scenarioSchema } from './scenario.ts';

/** The format of scenario files as a JSON Schema, for editors: what has a usual value may be left out. */
export function scenarioJsonSchema(): unknown {
  return {
    title: 'Queuescope scenario, version 1',
    ...z.toJSONSchema(scenarioSchema, { io: 'input' }),
  };
}
