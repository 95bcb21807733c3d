import { expect, test } from 'vitest';
import { TraceTransport } from '../../../src/transports/trace-transport.ts';
import type { Transfer } from '../../../src/usbnet/transfer.ts';
import { ManualTransport } from './manual-transport.ts';
import { RecordingHandler } from './recording-handler.ts';

function traced(capacity: number, bytesKept = 0) {
  const inner = new ManualTransport();
  const transport = new TraceTransport(inner, { capacity, bytesKept });
  const handler = new RecordingHandler();
  transport.setHandler(handler);
  const make = (endpoint: number, length: number): Transfer => {
    const transfer = transport.makeTransfer(endpoint, 64, 0);
    transfer.length = length;
    return transfer;
  };
  return { inner, transport, handler, make };
}

test('notes what passes, and passes it', () => {
  const { inner, transport, handler, make } = traced(100, 4);
  const out = make(0x02, 10);
  out.buffer.set([1, 2, 3, 4, 5]);
  const incoming = make(0x81, 64);
  expect(transport.submit(out, 1)).toBe('ok');
  expect(transport.submit(incoming, 2)).toBe('ok');
  incoming.buffer.set([9, 8]);
  inner.end(incoming, 'completed', 2, 3);
  transport.cancel(out, 4);
  inner.end(out, 'cancelled', 0, 5);
  inner.nextResult = 'no-memory';
  expect(transport.submit(out, 6)).toBe('no-memory');
  transport.request(
    {
      kind: 'control-out',
      requestType: 0x21,
      request: 1,
      value: 0,
      index: 0,
      data: Uint8Array.of(7),
      timeoutMs: 9,
    },
    7,
  );
  inner.answer({ status: 'stall', data: new Uint8Array(0) }, 8);
  inner.handler?.handleGone(9);

  expect([...transport.records()]).toEqual([
    { atUs: 1, event: 'submit', endpoint: 2, lengthBytes: 10, status: 'ok', bytes: '01020304' },
    { atUs: 2, event: 'submit', endpoint: 0x81, lengthBytes: 64, status: 'ok' },
    { atUs: 3, event: 'end', endpoint: 0x81, lengthBytes: 2, status: 'completed', bytes: '0908' },
    { atUs: 4, event: 'cancel', endpoint: 2, lengthBytes: 10 },
    { atUs: 5, event: 'end', endpoint: 2, lengthBytes: 0, status: 'cancelled' },
    { atUs: 6, event: 'submit', endpoint: 2, lengthBytes: 10, status: 'no-memory', bytes: '01020304' },
    { atUs: 7, event: 'request', endpoint: 0, lengthBytes: 1, request: 'control-out', bytes: '07' },
    { atUs: 8, event: 'result', endpoint: 0, lengthBytes: 0, status: 'stall' },
    { atUs: 9, event: 'gone', endpoint: 0, lengthBytes: 0 },
  ]);
  expect(handler.ends.map(({ status }) => status)).toEqual(['completed', 'cancelled']);
  expect(handler.results).toHaveLength(1);
  expect(handler.goneAtUs).toEqual([9]);
  expect(inner.requests).toHaveLength(1);
});

test('keeps the latest, says how many are missing, and no bytes unless asked to', () => {
  const { inner, transport, make } = traced(4);
  const transfer = make(0x02, 5);
  for (let i = 0; i < 5; i++) {
    transport.submit(transfer, 2 * i);
    inner.end(transfer, 'completed', 5, 2 * i + 1);
  }
  expect([...transport.dump()].map((line) => JSON.parse(line) as unknown)).toEqual([
    { eventsKept: 4, eventsLost: 6 },
    { atUs: 6, event: 'submit', endpoint: 2, lengthBytes: 5, status: 'ok' },
    { atUs: 7, event: 'end', endpoint: 2, lengthBytes: 5, status: 'completed' },
    { atUs: 8, event: 'submit', endpoint: 2, lengthBytes: 5, status: 'ok' },
    { atUs: 9, event: 'end', endpoint: 2, lengthBytes: 5, status: 'completed' },
  ]);
});
