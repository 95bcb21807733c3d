import { expect, test } from 'vitest';
import {
  type PriorityCalls,
  raisedPriority,
  ThreadPriority,
  threadPriority,
} from '../../../src/engine/thread-priority.ts';
import { startLineProgram } from '../../../src/observe/line-program.ts';

class FakePriority implements PriorityCalls {
  value: number;
  isAllowed = true;

  constructor(value = 0) {
    this.value = value;
  }

  get(): number {
    return this.value;
  }

  set(priority: number): void {
    if (!this.isAllowed && priority < this.value) throw new Error('EACCES');
    this.value = priority;
  }
}

test('is raised for the first who holds it, and given back by the last', () => {
  const system = new FakePriority(5);
  const priority = new ThreadPriority(system);
  const first = priority.hold();
  expect(system.value).toBe(raisedPriority);
  const second = priority.hold();
  first();
  first();
  expect(system.value).toBe(raisedPriority);
  second();
  expect(system.value).toBe(5);
  priority.hold()();
  expect(system.value).toBe(5);
});

test('without the right to, all stays as it is', () => {
  const system = new FakePriority();
  system.isAllowed = false;
  const release = new ThreadPriority(system).hold();
  expect(system.value).toBe(0);
  release();
  expect(system.value).toBe(0);
});

test('a higher one is not lowered', () => {
  const system = new FakePriority(-20);
  new ThreadPriority(system).hold()();
  expect(system.value).toBe(-20);
});

test('a program that is started meanwhile runs as usual', async () => {
  const release = threadPriority.hold();
  const niceness = await new Promise<string>((resolve) => {
    let said = '';
    const program = startLineProgram('sh', ['-c', 'read -r _; nice'], {
      handleLine: (line) => (said = line),
      handleErrorLine: () => {},
      handleEnd: () => resolve(said),
    });
    program.write('go');
  });
  release();
  expect(niceness).toBe('0');
});
