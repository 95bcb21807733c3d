import { findDataEndpoints } from './endpoints.ts';
import { clearHalt, describeStatus, DriverError, type Procedure, setInterface, sleep } from './procedure.ts';
import type { RecoveryStep } from './recovery-ladder.ts';
import type { RxMode } from './minidriver.ts';
import type { UsbnetState } from './state.ts';
import type { TransferStatus } from './transfer.ts';

/** Steps of {@link RecoveryStep} that are taken on an open interface. */
export type InterfaceStep = Exclude<RecoveryStep, 'rebind' | 'reset'>;

const waitStepUs = 3000;
const waitLimitUs = 5_000_000;

/**
 * Takes a step of the recovery ladder: everything in flight is cancelled, the step is done while nothing is out, and
 * then both directions go on. What was cancelled is lost to its sender, as after the kernel's transmit timeout.
 * @throws DriverError if transfers do not come back, or the device refuses
 */
export function* recoverInterface(
  state: UsbnetState,
  step: InterfaceStep,
  rxMode: RxMode,
  nowUs: () => number,
): Procedure<void> {
  const wasHalted = { tx: state.txHalt, rx: state.rxHalt };
  state.txHalt = true;
  state.rxHalt = true;
  state.txQueue.stop(nowUs());
  try {
    yield* drain(state, nowUs);
    state.driver.recover?.(nowUs());
    if (step === 'clear-halt') {
      yield* clearBothHalts(state);
      wasHalted.tx = false;
      wasHalted.rx = false;
      state.kevents.delete('tx-halt');
      state.kevents.delete('rx-halt');
    } else if (step === 'reselect') {
      yield* reselect(state);
      if (state.driver.setRxMode !== undefined) yield* state.driver.setRxMode(rxMode);
    }
  } finally {
    // A halt that was known before, or has come meanwhile, is for the deferred work to clear.
    state.txHalt = wasHalted.tx || state.kevents.has('tx-halt');
    state.rxHalt = wasHalted.rx || state.kevents.has('rx-halt');
    if (state.open && !state.unplugged) {
      if (!state.txHalt && state.txq.length < state.txQlen) state.txQueue.wake(nowUs());
      state.scheduleBottomHalf(nowUs());
    }
  }
}

function* drain(state: UsbnetState, nowUs: () => number): Procedure<void> {
  state.unlinkAll(state.txq, nowUs());
  state.unlinkAll(state.rxq, nowUs());
  for (let waitedUs = 0; state.txq.length + state.rxq.length > 0; waitedUs += waitStepUs) {
    if (waitedUs > waitLimitUs) {
      const left = state.txq.length + state.rxq.length;
      throw new DriverError('cancel what is in flight', `${left} transfers were never reported as done`);
    }
    yield* sleep(waitStepUs);
  }
}

function* clearBothHalts(state: UsbnetState): Procedure<void> {
  const { bulkIn, bulkOut } = state.binding;
  requireAnswer('clear the halt of the IN endpoint', yield* clearHalt(bulkIn));
  requireAnswer('clear the halt of the OUT endpoint', yield* clearHalt(bulkOut));
}

function* reselect(state: UsbnetState): Procedure<void> {
  const { driver, binding, transport } = state;
  if (driver.reselect !== undefined) {
    yield* driver.reselect();
    return;
  }
  const { dataInterface } = binding;
  const data = findDataEndpoints(transport.device.configuration, dataInterface);
  const status = yield* setInterface(dataInterface, data?.altSetting.alternateSetting ?? 0);
  requireAnswer('select the altsetting of the data interface', status);
}

/** A refusal (`stall`) is an answer: the device lives, and did what it does with that request. */
function requireAnswer(stage: string, status: TransferStatus): void {
  if (status !== 'completed' && status !== 'stall') {
    throw new DriverError(stage, describeStatus(status), status);
  }
}
