import { AppError } from '../base/errors.ts';

/** Both ends check what crosses; these are what they say of what is not as the contract has it. */

export function badParams(name: string, reason: string): AppError {
  return new AppError('bad-input', `${name} cannot be asked like that: ${reason}`, { details: { name } });
}

export function badResult(method: string, reason: string): AppError {
  return new AppError('internal', `the engine's answer to ${method} does not keep the contract: ${reason}`, {
    details: { method },
  });
}

export function versionMismatch(clientVersion: number, engineVersion: number): AppError {
  return new AppError(
    'usage',
    `the client speaks version ${clientVersion} of the contract, the engine version ${engineVersion}`,
    {
      details: { clientVersion, engineVersion },
      remedy: 'Reload the page; if that does not help, start Queuescope again.',
    },
  );
}
