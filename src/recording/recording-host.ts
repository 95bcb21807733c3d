import { arch, cpus, platform, release } from 'node:os';
import type { RecordingHost } from './recording-batch.ts';

/** This machine and this program's runtime, for {@link RecordingHeader}. */
export function recordingHost(): RecordingHost {
  const processors = cpus();
  const electron = process.versions['electron'];
  return {
    platform: platform(),
    architecture: arch(),
    kernel: release(),
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cpuCount: processors.length,
    node: process.versions.node,
    ...(electron !== undefined && { electron }),
  };
}
