import { describe, expect, test } from 'vitest';
import { bytesOf } from '../wire/bytes-of.ts';
import { interruptIn, personality, SimSetup } from './sim-setup.ts';

const send = 0x00;
const fetch = 0x01;

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function command(setup: SimSetup, line: string): string {
  return setup.driver.controlOut(0x21, send, 0, 0, Uint8Array.from(new TextEncoder().encode(line))).status;
}

function answer(setup: SimSetup, length = 1024): string {
  const result = setup.driver.controlIn(0xa1, fetch, 0, 0, length);
  return result.status === 'completed' ? text(result.data) : result.status;
}

/** Keeps the interrupt endpoint read, and collects what it brings. */
function listening(setup: SimSetup): Uint8Array[] {
  const notifications: Uint8Array[] = [];
  setup.driver.onDone = (transfer, nowUs) => {
    if (transfer.endpointAddress !== interruptIn || transfer.status !== 'completed') return;
    notifications.push(transfer.buffer.slice(0, transfer.actualLength));
    setup.driver.transport.submit(transfer, nowUs);
  };
  setup.driver.submit(setup.driver.in(interruptIn, 16));
  return notifications;
}

const responseAvailable = bytesOf('A1 01 0000 0000 0000');

describe("the AT channel of Huawei's NCM", () => {
  test('each message is announced, and fetched once', () => {
    const setup = new SimSetup(personality('stick-huawei'));
    expect(setup.driver.setInterface(0, 1).status).toBe('completed');
    const notifications = listening(setup);
    setup.driver.run(200_000);
    notifications.length = 0;
    expect(command(setup, 'AT^NDISSTATQRY?\r')).toBe('completed');
    setup.driver.run(200_000);
    expect(notifications).toEqual([responseAvailable]);
    expect(answer(setup)).toBe('\r\n^NDISSTATQRY: 0,,,"IPV4"\r\n\r\nOK\r\n');
    expect(answer(setup)).toBe('');
    expect(command(setup, 'AT^NDISDUP=1,1,"internet"\r')).toBe('completed');
    setup.driver.run(200_000);
    expect(notifications).toEqual([responseAvailable, responseAvailable, responseAvailable]);
    expect(answer(setup)).toBe('\r\nOK\r\n');
    expect(answer(setup)).toBe('\r\n^NDISSTAT:1,,,"IPV4"\r\n');
    expect(command(setup, 'AT^NDISDUP=1,1\r')).toBe('completed');
    expect(answer(setup) + answer(setup)).toBe('\r\nOK\r\n');
  });

  test('commands and answers may come in pieces', () => {
    const setup = new SimSetup(personality('stick-huawei'));
    command(setup, 'AT+C');
    expect(answer(setup)).toBe('');
    command(setup, 'GMI\rAT\r');
    expect([answer(setup, 5), answer(setup, 5)]).toEqual(['\r\nQue', 'uesco']);
    expect(answer(setup)).toBe('pe\r\n\r\nOK\r\n');
    expect(answer(setup)).toBe('\r\nOK\r\n');
    command(setup, `${'x'.repeat(3000)}\r`);
    expect(answer(setup)).toBe('\r\nERROR\r\n');
  });
});
