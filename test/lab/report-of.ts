/** Recordings that a guest left are reported on this machine: in the guest each report takes the time of a program's start. */
import { runCli } from '../harness/run-cli.ts';
import type { Scenario } from './guest.ts';

/** What `queuescope report` makes of a scenario's recording. Rejects with its words where it fails. */
export async function reportOf(
  scenario: Scenario,
  file: string,
  format: 'html' | 'csv' | 'json',
): Promise<string> {
  const out = ['--format', format, '--out', '-'];
  const { exitCode, stdout, stderr } = await runCli(['report', scenario.path(file), ...out]);
  if (exitCode !== 0) throw new Error(`the report ended with exit code ${String(exitCode)}: ${stderr}`);
  return stdout;
}
