import type { FaultColumn } from './telemetry.ts';

/** What each of the fault counters counts, for people. */
export const faultWords: Readonly<Record<FaultColumn, { readonly title: string; readonly hint: string }>> = {
  txStallErrors: { title: 'Sent: stalls', hint: 'The device halted the endpoint that takes frames.' },
  txProtocolErrors: {
    title: 'Sent: protocol errors',
    hint: 'Damaged or missing answers on the bus: a bad cable or plug, or a device that is just going away.',
  },
  txTimeoutErrors: {
    title: 'Sent: timeouts',
    hint: 'Transfers that the system ended because they took too long.',
  },
  txOtherErrors: { title: 'Sent: other errors', hint: 'Transfers that failed and nobody says how.' },
  rxStallErrors: { title: 'Received: stalls', hint: 'The device halted the endpoint that brings frames.' },
  rxProtocolErrors: {
    title: 'Received: protocol errors',
    hint: 'Damaged or missing packets on the bus: a bad cable or plug, or a device that is just going away.',
  },
  rxOverflowErrors: {
    title: 'Received: overflows',
    hint: 'The device sent more than it was asked for (babble).',
  },
  rxTimeoutErrors: {
    title: 'Received: timeouts',
    hint: 'Transfers that the system ended because they took too long.',
  },
  rxOtherErrors: { title: 'Received: other errors', hint: 'Transfers that failed and nobody says how.' },
  txTimeouts: {
    title: 'Transmit timeouts',
    hint: 'Times that nothing was sent for five seconds although the queue was full.',
  },
  recoveryRetries: {
    title: 'Recovery steps',
    hint: 'What was tried to get a device going again that had stopped; the events say what, and how it ended.',
  },
  recoveryResets: { title: 'Port resets', hint: "Recovery steps that were a reset of the device's port." },
};
