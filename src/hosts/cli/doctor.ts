import type { Check, CheckGroup } from '../doctor/check.ts';
import { checkGroups, exitCodeOf, worstState } from '../doctor/check.ts';
import { examine } from '../doctor/examine.ts';
import type { Machine } from '../doctor/machine.ts';
import { readMachine } from '../doctor/read-machine.ts';
import { version } from '../version.ts';
import type { Command } from './command.ts';
import { wrapText } from './word-wrap.ts';

export interface DoctorOptions {
  readonly json: boolean;
}

/** `queuescope doctor`: what on this machine stops a device from being driven or observed, and what to do about it. */
export const doctor: Command<DoctorOptions> = async (context, { json }) => {
  const machine = await readMachine(await context.engine('cli'), context.log);
  const checks = examine(machine);
  if (json) context.output.json(doctorDocument(machine, checks));
  else for (const line of doctorLines(checks)) context.output.line(line);
  return exitCodeOf(checks);
};

/** The one JSON document of `doctor --json`. */
export function doctorDocument(machine: Machine, checks: readonly Check[]): object {
  return {
    version,
    platform: machine.platform,
    surroundings: machine.surroundings,
    kernelRelease: machine.kernelRelease,
    state: worstState(checks),
    exitCode: exitCodeOf(checks),
    checks: checks.map(({ id, subject, state, message, remedy, kind }) => ({
      id,
      group: checkGroups[id],
      subject: subject ?? null,
      state,
      message,
      remedy: remedy ?? null,
      kind: kind ?? null,
    })),
  };
}

const groupTitles: Readonly<Record<CheckGroup, string>> = {
  program: 'Queuescope itself',
  drive: 'Driving a USB device',
  observe: 'Observing an interface of the kernel',
  tap: 'TAP interfaces, and other programs',
};

const columns = 100;
/** States in a column of their own. */
const stateWidth = 9;
const textIndentation = ' '.repeat(2 + stateWidth);
/** A udev rule of 94 characters must fit, and be copied whole. */
const remedyIndentation = ' '.repeat(6);

/** The same for people: groups, a line a finding, and what to do below it. */
export function doctorLines(checks: readonly Check[]): readonly string[] {
  const applicable = checks.filter(({ state }) => state !== 'not-applicable');
  const groups = Object.keys(groupTitles) as CheckGroup[];
  return [
    ...groups.flatMap((group) => {
      const own = applicable.filter(({ id }) => checkGroups[id] === group);
      return own.length === 0 ? [] : [groupTitles[group], ...own.flatMap(checkLines), ''];
    }),
    ...wrapText(summary(checks), columns, { first: '', rest: '' }),
  ];
}

function checkLines({ state, message, remedy }: Check): readonly string[] {
  // A name with a line's end in it must not look like a finding of ours.
  const text = message.replaceAll(/\s+/g, ' ');
  const remedies = (remedy ?? '').split('\n').filter((line) => line !== '');
  return [
    ...wrapText(text, columns, { first: `  ${state.padEnd(stateWidth)}`, rest: textIndentation }),
    ...remedies.flatMap((line) =>
      wrapText(line, columns, { first: remedyIndentation, rest: remedyIndentation }),
    ),
  ];
}

function summary(checks: readonly Check[]): string {
  const count = (wanted: Check['state']): number => checks.filter(({ state }) => state === wanted).length;
  const problems = count('problem');
  const warnings = count('warning');
  const result =
    problems > 0
      ? `${counted(problems, 'problem')} to solve first${warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''}.`
      : warnings > 0
        ? `Nothing stops a device from being driven or observed; ${counted(warnings, 'warning')}.`
        : 'All is well.';
  const left = count('not-applicable');
  return left === 0 ? result : `${result} ${counted(left, 'check')} did not apply here.`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
