export type BuildResult = 'built' | 'unchanged' | 'skipped';

export function buildTargets(options: {
  readonly root: string;
  readonly names?: readonly string[];
  readonly print?: (line: string) => void;
}): Promise<Record<string, BuildResult>>;
