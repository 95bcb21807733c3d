import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InvariantError } from '../../../src/base/errors.ts';
import { TransferList } from '../../../src/usbnet/transfer-list.ts';
import { Transfer } from '../../../src/usbnet/transfer.ts';

function transfers(count: number): readonly Transfer[] {
  return Array.from({ length: count }, () => new Transfer(0x02, new Uint8Array(1), 0));
}

function contents(list: TransferList): readonly Transfer[] {
  const found: Transfer[] = [];
  for (let item = list.head; item !== undefined; item = item.next) found.push(item);
  return found;
}

test('it holds what an array would hold, whatever is taken out of its middle', () => {
  const step = fc.record({ what: fc.constantFrom('push', 'remove', 'shift'), at: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const all = transfers(20);
      const list = new TransferList();
      const model: Transfer[] = [];
      for (const { what, at } of steps) {
        const item = all[at % all.length];
        if (item === undefined) continue;
        if (what === 'push' && !model.includes(item)) {
          list.push(item);
          model.push(item);
        } else if (what === 'remove' && model.includes(item)) {
          list.remove(item);
          model.splice(model.indexOf(item), 1);
        } else if (what === 'shift') {
          expect(list.shift()).toBe(model.shift());
        }
        expect(contents(list)).toEqual(model);
        expect(list.length).toBe(model.length);
      }
    }),
  );
});

test('a transfer is in one list at a time', () => {
  const [item] = transfers(1);
  if (item === undefined) throw new Error('no transfer');
  const list = new TransferList();
  const other = new TransferList();
  list.push(item);
  expect(() => other.push(item)).toThrow(InvariantError);
  expect(() => other.remove(item)).toThrow(InvariantError);
  list.remove(item);
  expect(() => list.remove(item)).toThrow(InvariantError);
  other.push(item);
  expect(other.length).toBe(1);
});
