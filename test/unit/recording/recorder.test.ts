import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { probeColumns, sampleColumns } from '../../../src/contract/telemetry.ts';
import { createInProcessRecorder } from '../../../src/recording/create-recorder.ts';
import { ChannelRecorder, type ChannelRecorderStatus } from '../../../src/recording/recorder.ts';
import { RecordingReader } from '../../../src/recording/recording-reader.ts';
import type { WriterChannel, WriterReply, WriterRequest } from '../../../src/recording/writer-protocol.ts';
import { syntheticSession } from '../../harness/synthetic-session.ts';
import { scratchFolder } from './scratch-folder.ts';

const made = syntheticSession({ phases: [{ seconds: 20, bql: true, load: true }] });
const { header } = made;

function rows(count: number, fromUs = 0): Float64Array {
  const values = new Float64Array(count * sampleColumns.length);
  for (let i = 0; i < count; i++) values[i * sampleColumns.length] = fromUs + (i + 1) * 50_000;
  return values;
}

/** A writer that answers when the test says so. */
class FakeChannel implements WriterChannel {
  readonly requests: WriterRequest[] = [];
  terminated = false;
  reply: (reply: WriterReply) => void = () => undefined;
  lose: (reason: string) => void = () => undefined;

  post(request: WriterRequest, transfer: ArrayBuffer[]): void {
    this.requests.push(structuredClone(request, { transfer }));
  }
  listen(onReply: (reply: WriterReply) => void, onLost: (reason: string) => void): void {
    this.reply = onReply;
    this.lose = onLost;
  }
  terminate(): void {
    this.terminated = true;
  }

  get batches(): Extract<WriterRequest, { type: 'batch' }>[] {
    return this.requests.filter((request) => request.type === 'batch');
  }
  storeAll(): void {
    for (const { bytes } of this.batches) this.reply({ type: 'stored', bytes, sizeBytes: 4096 });
  }
}

describe('batches', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('go out when 100 rows are there, or half a second after the first of fewer', () => {
    const channel = new FakeChannel();
    const recorder = new ChannelRecorder(channel, { path: 'a', header });
    recorder.writeRows('samples', rows(99));
    expect(channel.batches).toHaveLength(0);
    recorder.writeRows('samples', rows(1, 99 * 50_000));
    expect(channel.batches).toHaveLength(1);
    expect(channel.batches[0]?.batch.samples).toEqual(rows(100));

    recorder.writeEvent({ timeUs: 1, kind: 'note', text: 'hello' });
    vi.advanceTimersByTime(400);
    recorder.writeRows('probes', new Float64Array(probeColumns.length));
    vi.advanceTimersByTime(99);
    expect(channel.batches).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(channel.batches).toHaveLength(2);
    expect(channel.batches[1]?.batch).toMatchObject({ entries: [{ type: 'event' }] });
    expect(channel.batches[1]?.batch.probes).toHaveLength(probeColumns.length);
    vi.advanceTimersByTime(10_000);
    expect(channel.batches).toHaveLength(2);
  });

  test('leave the array of the caller alone', () => {
    const channel = new FakeChannel();
    const recorder = new ChannelRecorder(channel, { path: 'a', header });
    const values = rows(100);
    recorder.writeRows('samples', values);
    expect(values).toEqual(rows(100));
  });

  test('carry only the newest of several states of the session', () => {
    const channel = new FakeChannel();
    const recorder = new ChannelRecorder(channel, { path: 'a', header });
    for (const [timeUs, id] of [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ] as const) {
      recorder.writeSession({ ...header.session, id }, timeUs);
    }
    vi.advanceTimersByTime(500);
    expect(channel.batches[0]?.batch.entries).toMatchObject([
      { type: 'session', timeUs: 3, session: { id: 'c' } },
    ]);
  });

  test('that the disk does not take are bounded: the rest is dropped, counted, and told as an event', () => {
    const channel = new FakeChannel();
    const rowBytes = 8 * sampleColumns.length;
    const recorder = new ChannelRecorder(channel, { path: 'a', header, maxPendingBytes: 250 * rowBytes });
    recorder.writeRows('samples', rows(100));
    recorder.writeRows('samples', rows(100, 5e6));
    recorder.writeRows('samples', rows(100, 10e6));
    recorder.writeRows('samples', rows(40, 15e6));
    expect(channel.batches).toHaveLength(2);
    expect(recorder.status.dropped).toEqual({ samples: 100, probes: 0, entries: 0 });
    expect(recorder.status.state).toBe('recording');

    channel.storeAll();
    vi.advanceTimersByTime(500);
    const { entries, samples } = channel.batches[2]?.batch ?? { entries: [], samples: [] };
    expect(samples).toHaveLength(40 * sampleColumns.length);
    expect(entries).toEqual([
      {
        type: 'event',
        event: { timeUs: 15e6, kind: 'gap', text: 'The disk did not keep up: 100 rows were not recorded' },
      },
    ]);
    // Told once.
    channel.storeAll();
    recorder.writeRows('samples', rows(100, 20e6));
    expect(channel.batches[3]?.batch.entries).toEqual([]);
  });

  test('a row of the wrong width is our own fault, and found at once', () => {
    const recorder = new ChannelRecorder(new FakeChannel(), { path: 'a', header });
    expect(() => recorder.writeRows('samples', new Float64Array(7))).toThrow(
      `rows of samples have ${sampleColumns.length} columns`,
    );
  });
});

describe('a writer that is lost', () => {
  test('fails the recording with a reason, counts what it took along, and drops what comes', async () => {
    const channel = new FakeChannel();
    const recorder = new ChannelRecorder(channel, { path: 'a', header });
    const states: ChannelRecorderStatus[] = [];
    recorder.onStatus((status) => states.push(status));
    recorder.writeRows('samples', rows(100));
    recorder.writeRows('samples', rows(30, 5e6));
    recorder.writeEvent({ timeUs: 1, kind: 'note', text: 'hello' });
    const flushed = recorder.flush();
    channel.lose('out of memory');
    await expect(flushed).rejects.toMatchObject({ kind: 'file-failed' });
    await expect(recorder.whenOpen()).rejects.toMatchObject({ kind: 'file-failed' });
    await expect(recorder.flush()).rejects.toMatchObject({ kind: 'file-failed' });
    recorder.writeRows('samples', rows(5, 9e6));
    expect(recorder.status).toMatchObject({
      state: 'failed',
      dropped: { samples: 135, probes: 0, entries: 1 },
    });
    expect(recorder.status.failure?.message).toContain('out of memory');
    expect(states.map(({ state }) => state)).toEqual(['failed']);
    expect(await recorder.close()).toMatchObject({ state: 'failed' });
  });

  test('does not hold up closing: after the deadline it is ended', async () => {
    const channel = new FakeChannel();
    const recorder = new ChannelRecorder(channel, { path: 'a', header, closeDeadlineMs: 30 });
    const summary = await recorder.close();
    expect(summary).toMatchObject({ state: 'failed' });
    expect(summary.failure?.message).toContain('could not be closed within 0.03 s');
    expect(channel.terminated).toBe(true);
    expect(await recorder.close()).toEqual(summary);
  });
});

describe('a recorder in the same thread', () => {
  test('stores all of a session', async () => {
    const path = join(scratchFolder(), 'a.qscope');
    const recorder = createInProcessRecorder({ path, header });
    await recorder.whenOpen();
    const width = 7 * sampleColumns.length;
    for (let at = 0; at < made.samples.length; at += width) {
      recorder.writeRows('samples', made.samples.subarray(at, at + width));
    }
    recorder.writeRows('probes', made.probes);
    for (const [index, phase] of made.phases.entries()) {
      recorder.startPhase(phase);
      if (index === made.phases.length - 1) recorder.endPhase(phase.endUs);
    }
    recorder.writeSettings({ ...header.session.settings, sampleRateHz: 50 }, 7e6);
    recorder.writeMeta('scenario', { name: 'cellular-10mbit' });
    await recorder.flush();
    const whileOpen = RecordingReader.open(path);
    expect(whileOpen.rowCount('samples')).toBe(400);
    whileOpen.close();
    const summary = await recorder.close();
    expect(summary).toMatchObject({
      state: 'closed',
      durationUs: 20e6,
      dropped: { samples: 0, probes: 0, entries: 0 },
    });
    expect(summary.sizeBytes).toBeGreaterThan(10_000);
    recorder.writeEvent({ timeUs: 1, kind: 'note', text: 'too late' });
    expect(recorder.status.dropped.entries).toBe(1);

    const reader = RecordingReader.open(path);
    expect(reader.columns('samples', ['inflightBytes']).rowCount).toBe(400);
    expect(reader.settingsChanges().map(({ timeUs }) => timeUs)).toEqual([0, 7e6]);
    expect(reader.metaValue('scenario')).toEqual({ name: 'cellular-10mbit' });
    expect(reader.phases()).toHaveLength(1);
    reader.close();
  });

  test('that cannot make its file says so, and the session may go on', async () => {
    const recorder = createInProcessRecorder({ path: join(scratchFolder(), 'no', 'a.qscope'), header });
    await expect(recorder.whenOpen()).rejects.toMatchObject({ kind: 'file-failed' });
    recorder.writeRows('samples', rows(3));
    expect(recorder.status).toMatchObject({ state: 'failed', dropped: { samples: 3 } });
    expect(recorder.status.failure?.remedy).toBeDefined();
    expect(await recorder.close()).toMatchObject({ state: 'failed', durationUs: 0 });
  });
});
