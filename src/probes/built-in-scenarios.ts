import adapter100Mbit from './scenarios/adapter-100mbit.json' with { type: 'json' };
import cellular10Mbit from './scenarios/cellular-10mbit.json' with { type: 'json' };
import fieldAb from './scenarios/field-ab.json' with { type: 'json' };
import quickAb from './scenarios/quick-ab.json' with { type: 'json' };
import rrulLike from './scenarios/rrul-like.json' with { type: 'json' };
import seed100Mbit from './scenarios/seed-100mbit.json' with { type: 'json' };
import seed2500Mbit from './scenarios/seed-2500mbit.json' with { type: 'json' };
import seedCellular10MbitUsb2 from './scenarios/seed-cellular-10mbit-usb2.json' with { type: 'json' };
import seedCellular10Mbit from './scenarios/seed-cellular-10mbit.json' with { type: 'json' };
import soak from './scenarios/soak.json' with { type: 'json' };
import { type Scenario, scenarioSchema } from './scenario.ts';

/** Scenarios that come with Queuescope, each a file of data, the most asked for first. */
const files: readonly unknown[] = [
  quickAb,
  fieldAb,
  soak,
  rrulLike,
  seed2500Mbit,
  seed100Mbit,
  seedCellular10Mbit,
  seedCellular10MbitUsb2,
  cellular10Mbit,
  adapter100Mbit,
];

/** Reads those that come with Queuescope. */
export function builtInScenarios(): readonly Scenario[] {
  return files.map((file) => scenarioSchema.parse(file));
}
