import type { z } from 'zod';
import { findJsonLines, type JsonLines } from '../base/json-lines.ts';
import { type Scenario, scenarioSchema, scenarioVersion } from './scenario.ts';

/** More of them would not make it clearer what to do. */
const shownProblems = 5;

export type ScenarioParse =
  | { readonly ok: true; readonly scenario: Scenario }
  /** One line of text a problem, each with the line and the field in question. */
  | { readonly ok: false; readonly problem: string };

/**
 * Reads a scenario.
 * @param text a JSON document
 */
export function parseScenario(text: string): ScenarioParse {
  const found = findJsonLines(text);
  if (!found.ok) {
    return { ok: false, problem: `line ${found.fault.line}: not JSON: ${found.fault.message}` };
  }
  const value: unknown = JSON.parse(text);
  const other = otherVersion(value);
  if (other !== undefined) {
    return { ok: false, problem: `line ${found.lines.lineOf(['version'])}: version: ${other}` };
  }
  const result = scenarioSchema.safeParse(value);
  if (result.success) return { ok: true, scenario: result.data };
  return { ok: false, problem: describeIssues(result.error.issues, found.lines) };
}

/** Of another version nothing else is looked at: its fields may mean something else. */
function otherVersion(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const version = 'version' in value ? value.version : undefined;
  if (version === scenarioVersion) return undefined;
  if (version === undefined) return `it is missing; this Queuescope reads version ${scenarioVersion}`;
  return `it is ${JSON.stringify(version)}, and this Queuescope reads version ${scenarioVersion}`;
}

function describeIssues(issues: readonly z.core.$ZodIssue[], lines: JsonLines): string {
  const texts = issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [problemAt(issue.path, issue.message, lines)];
    return issue.keys.map((key) => problemAt([...issue.path, key], 'there is no such field', lines));
  });
  const left = texts.length - shownProblems;
  return [...texts.slice(0, shownProblems), ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
}

function problemAt(path: readonly PropertyKey[], message: string, lines: JsonLines): string {
  const field = path.length === 0 ? 'the document' : path.map(String).join('.');
  return `line ${lines.lineOf(path)}: ${field}: ${message}`;
}
