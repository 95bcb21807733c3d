import { AppError } from '../base/errors.ts';
import type { MethodParams, MethodResult } from '../contract/methods.ts';
import type { Session } from '../contract/session.ts';
import type { Archive, SessionRecorder } from '../engine/session-recorder.ts';
import { createInProcessRecorder, createWorkerRecorder } from '../recording/create-recorder.ts';
import { RecordingLibrary } from '../recording/library.ts';
import { recordingHost } from '../recording/recording-host.ts';
import type { ReportFile } from '../report/create-report.ts';
import { makeReport } from './make-report.ts';
import { version } from './version.ts';

export interface FileArchiveOptions {
  readonly folder: string;
  /** The bundled recording worker; undefined: recordings are written by this thread. */
  readonly workerScript: string | undefined;
}

/** Recordings as files in one folder, and the reports on them. */
export class FileArchive implements Archive {
  readonly library: RecordingLibrary;
  readonly #workerScript: string | undefined;

  constructor(options: FileArchiveOptions) {
    this.library = new RecordingLibrary(options.folder);
    this.#workerScript = options.workerScript;
  }

  record(session: Session, path: string | undefined): SessionRecorder {
    const options = {
      path: path ?? this.library.newPath(session.device.name, session.startedAt),
      header: { appVersion: version, host: recordingHost(), session },
    };
    return this.#workerScript === undefined
      ? createInProcessRecorder(options)
      : createWorkerRecorder(this.#workerScript, options);
  }

  async list(): Promise<MethodResult<'recordings.list'>> {
    return this.library.list().map((info) => ({
      id: info.id,
      fileName: info.fileName,
      deviceName: info.deviceName,
      startedAt: info.startedAt,
      durationUs: info.durationUs,
      sizeBytes: info.sizeBytes,
      recording: info.state === 'recording',
    }));
  }

  async report(params: MethodParams<'report.create'>): Promise<MethodResult<'report.create'>> {
    const known = this.library.list().some((info) => info.id === params.recordingId);
    if (!known) {
      throw new AppError('file-failed', `there is no recording ${params.recordingId}`, {
        details: { recordingId: params.recordingId },
      });
    }
    const reader = this.library.open(params.recordingId);
    try {
      const { companions, ...report } = await makeReport(reader, params.format, {
        createdAt: new Date().toISOString(),
      });
      return [report, ...companions].map(sendable);
    } finally {
      reader.close();
    }
  }
}

function sendable({ fileName, mediaType, text, bytes }: ReportFile): MethodResult<'report.create'>[number] {
  return bytes === undefined
    ? { fileName, mediaType, text }
    : { fileName, mediaType, text: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
}
