import { AppError } from '../base/errors.ts';
import type { DescribedDevice } from '../minidrivers/described-device.ts';
import { explainNoMatch, matchDevice } from '../minidrivers/registry.ts';
import type { Match } from '../usbnet/minidriver.ts';
import type { OpenChoice } from './opened-device.ts';

/**
 * Which function of a device is to be driven: the best one, or the best one of the configuration that the user named.
 * @throws AppError `unsupported-device` if nothing there can be driven
 */
export function chooseMatch(
  device: DescribedDevice & { readonly id: string; readonly activeConfiguration?: number | undefined },
  choice: OpenChoice,
): Match {
  const { configuration } = choice;
  const matches = matchDevice(device, device.activeConfiguration);
  const match =
    configuration === undefined
      ? matches[0]
      : matches.find(({ configurationValue }) => configurationValue === configuration);
  if (match !== undefined) return match;
  const details = { deviceId: device.id };
  if (configuration === undefined) {
    const reason = explainNoMatch(device, device.activeConfiguration);
    throw new AppError('unsupported-device', `${device.id} cannot be driven: ${reason}`, { details });
  }
  const values = [...new Set(matches.map(({ configurationValue }) => configurationValue))];
  throw new AppError(
    'unsupported-device',
    `configuration ${configuration} of ${device.id} has nothing that a minidriver here knows`,
    { details, remedy: `Configurations that can be driven: ${values.join(', ') || 'none'}.` },
  );
}
