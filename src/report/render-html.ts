import { createHash } from 'node:crypto';
import {
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatElapsed,
  formatShare,
  noValue,
} from '../base/units.ts';
import type { Mode } from '../contract/device.ts';
import { faultWords } from '../contract/fault-words.ts';
import { modeWords, speedWords } from './device-words.ts';
import { renderDistributionChart } from './distribution-chart.ts';
import { experimentSection } from './experiment-section.ts';
import { createHeadline } from './headline.ts';
import { Markup, markup } from './markup.ts';
import type { ArmResult, PhaseResult, ReportModel } from './report-model.ts';
import { reportStyle } from './report-style.ts';
import { settingRows } from './setting-words.ts';
import type { StretchStatistics } from './statistics.ts';
import { renderTimeCharts } from './time-charts.ts';

/** More events than this are in the JSON export only: a table of thousands is not read. */
const mostEvents = 200;

/**
 * A report as one HTML document that needs nothing else: no network, no script. Its content security policy allows its
 * own style and nothing more.
 */
export function renderHtml(model: ReportModel): string {
  const styleHash = createHash('sha256').update(reportStyle).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'`;
  const headline = createHeadline(model);
  const measured = model.whole.samples + model.whole.probes > 0;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="Queuescope ${model.meta.appVersion}">
<title>${model.title}: Queuescope report</title>
<style>${new Markup(reportStyle)}</style>
</head>
<body>
${pageHeader(model)}
<main>
<p class="headline">${headline.main}</p>
<ul class="more">${headline.more.map((sentence) => markup`<li>${sentence}</li>`)}</ul>
${comparison(model)}
${validity(model)}
${measured ? markup`<h2>Over time</h2><figure>${renderTimeCharts(model)}<figcaption class="note">${chartCaption(model)}</figcaption></figure>` : undefined}
${model.experiment === undefined ? undefined : experimentSection(model.experiment)}
${phaseTables(model)}
${distributionFigure(model)}
${faults(model)}
${events(model)}
${problems(model)}
${deviceAndSettings(model)}
${method(model)}
</main>
${pageFooter(model)}
</body>
</html>
`.text;
}

function pageHeader(model: ReportModel): Markup {
  const { device, meta } = model;
  const ids =
    device.vendorId === undefined || device.productId === undefined
      ? undefined
      : `${hex4(device.vendorId)}:${hex4(device.productId)}`;
  const identity = [
    device.manufacturer,
    model.title === device.name ? undefined : device.name,
    ids,
    device.speed === 'unknown' ? undefined : `USB ${speedWords[device.speed]}`,
    device.minidriver,
    modeWords[device.mode],
  ].filter((part) => part !== undefined && part !== '');
  return markup`<header>
<p class="kind"><span>Queuescope field report</span><span>${formatTime(meta.startedAt)}, ${formatLength(model.range.toUs - model.range.fromUs)}</span></p>
<h1><bdi>${model.title}</bdi></h1>
<p class="identity">${identity.map((part, index) => markup`${index === 0 ? '' : ' · '}<bdi>${part}</bdi>`)}</p>
</header>`;
}

/** BQL off against on, in three columns; nothing where only one was measured. */
function comparison({ arms: { idle, off, on } }: ReportModel): Markup | undefined {
  if (off === undefined || on === undefined) return undefined;
  const arms = idle === undefined ? [off, on] : [idle, off, on];
  const row = (name: string, value: (statistics: StretchStatistics) => string, change: string): Markup =>
    markup`<tr><td>${name}</td>${arms.map((arm) => markup`<td class="number">${value(arm.statistics)}</td>`)}<td class="number">${change}</td></tr>`;
  const factor = (of: (statistics: StretchStatistics) => number): string =>
    ratio(of(off.statistics), of(on.statistics));
  return markup`<div class="scroll"><table class="compare">
<thead><tr><th></th>${idle === undefined ? undefined : markup`<th class="number">idle</th>`}<th class="number">load, BQL off</th><th class="number">load, BQL on</th><th class="number">on ÷ off</th></tr></thead>
<tbody>
${row(
  'Round trip, p50',
  ({ rttUs }) => formatDuration(rttUs.p50),
  factor(({ rttUs }) => rttUs.p50),
)}
${row(
  'Round trip, p95',
  ({ rttUs }) => formatDuration(rttUs.p95),
  factor(({ rttUs }) => rttUs.p95),
)}
${row(
  'Round trip, p99',
  ({ rttUs }) => formatDuration(rttUs.p99),
  factor(({ rttUs }) => rttUs.p99),
)}
${row(
  'In the driver, p50',
  ({ probeDriverQueueUs }) => formatDuration(probeDriverQueueUs.p50),
  factor(({ probeDriverQueueUs }) => probeDriverQueueUs.p50),
)}
${row(
  'Bytes in flight, p50',
  ({ inflightBytes }) => formatBytes(inflightBytes.p50),
  factor(({ inflightBytes }) => inflightBytes.p50),
)}
${row(
  'Throughput up',
  ({ throughputBitsPerSecond }) => formatBitRate(throughputBitsPerSecond),
  factor(({ throughputBitsPerSecond }) => throughputBitsPerSecond),
)}
${row('Pings lost', lossOf, '')}
</tbody></table></div>
<p class="note">${armWords(idle, off, on)}</p>`;
}

function armWords(...arms: readonly (ArmResult | undefined)[]): string {
  const parts = arms
    .filter((arm) => arm !== undefined)
    .map((arm) => {
      const name = arm.load ? `BQL ${arm.bql}` : 'idle';
      const spread =
        arm.phases > 1
          ? ` (medians of the phases from ${formatDuration(arm.rttP50LowUs)} to ${formatDuration(arm.rttP50HighUs)})`
          : '';
      const phases = `${formatCount(arm.phases)} ${arm.phases === 1 ? 'phase' : 'phases'}`;
      return `${name}: ${phases}, ${formatLength(arm.countedUs)} counted, ${formatCount(arm.statistics.rttUs.n)} round trips${spread}`;
    });
  return `${parts.join('; ')}.`;
}

function validity({ validity: notes }: ReportModel): Markup | undefined {
  if (notes.length === 0) return undefined;
  return markup`<h2>What to know about these numbers</h2>
<ul class="notes">${notes.map(({ severity, text }) => markup`<li class="${severity}">${text}</li>`)}</ul>`;
}

function chartCaption({ phaseSource }: ReportModel): string {
  const hatched =
    'Hatched: BQL off. Gaps: nothing was measured. Areas are read at their upper edge; every pixel shows the extremes of what fell into it.';
  return phaseSource === 'settings'
    ? `${hatched} Phases are the stretches between switches of BQL and load.`
    : hatched;
}

interface TableRow {
  readonly name: string;
  readonly detail: string;
  readonly pooled: boolean;
  readonly firstPooled: boolean;
  readonly statistics: StretchStatistics;
}

function tableRows({ phases, arms, device }: ReportModel): TableRow[] {
  const rows = phases.map((phase) => ({
    name: phase.name,
    detail: phaseDetail(phase, device.mode),
    pooled: false,
    firstPooled: false,
    statistics: phase.statistics,
  }));
  const pooled = [arms.off, arms.on]
    .filter((arm) => arm !== undefined && arm.phases > 1)
    .map((arm, index) => ({
      name: `All with BQL ${arm?.bql ?? ''}, load`,
      detail: `${formatCount(arm?.phases ?? 0)} phases`,
      pooled: true,
      firstPooled: index === 0,
      statistics: arm?.statistics,
    }));
  return [...rows, ...pooled].filter((row): row is TableRow => row.statistics !== undefined);
}

function phaseDetail(phase: PhaseResult, mode: Mode): string {
  return `${formatElapsed(phase.startUs)} to ${formatElapsed(phase.endUs)}, ${conditions(phase, mode)}`;
}

function conditions({ bql, load, loadRateBitsPerSecond }: PhaseResult, mode: Mode): string {
  if (mode === 'observe') return `BQL ${bql}, other programs’ load`;
  const loadWords = !load
    ? 'no load'
    : loadRateBitsPerSecond === undefined || loadRateBitsPerSecond === 0
      ? 'full load'
      : `load of ${formatBitRate(loadRateBitsPerSecond)}`;
  return `BQL ${bql}, ${loadWords}`;
}

function phaseTables(model: ReportModel): Markup | undefined {
  const rows = tableRows(model);
  if (rows.length === 0) return undefined;
  const open = (row: TableRow): Markup =>
    markup`<tr class="${row.pooled ? 'pooled' : ''} ${row.firstPooled ? 'first-pooled' : ''}"><th scope="row">${row.name}<br><span class="note">${row.detail}</span></th>`;
  return markup`<h2>Latency by phase</h2>
<div class="scroll"><table>
<thead>
<tr><th rowspan="2">Phase</th><th class="group" colspan="6">Round trip of the ping</th><th class="group" colspan="3">of it in the driver</th><th class="group">in the qdisc</th></tr>
<tr><th class="number">n</th><th class="number">lost</th><th class="number">p50</th><th class="number">p95</th><th class="number">p99</th><th class="number">max</th><th class="number">p50</th><th class="number">p95</th><th class="number">p99</th><th class="number">p50</th></tr>
</thead>
<tbody>${rows.map((row) => {
    const { rttUs, probeDriverQueueUs: driver, probeQdiscWaitUs: qdisc } = row.statistics;
    return markup`${open(row)}${cells([
      formatCount(rttUs.n),
      lossOf(row.statistics),
      formatDuration(rttUs.p50),
      formatDuration(rttUs.p95),
      formatDuration(rttUs.p99),
      formatDuration(rttUs.max),
      formatDuration(driver.p50),
      formatDuration(driver.p95),
      formatDuration(driver.p99),
      formatDuration(qdisc.p50),
    ])}</tr>`;
  })}</tbody></table></div>
<h2>Queue and throughput by phase</h2>
<div class="scroll"><table>
<thead>
<tr><th rowspan="2">Phase</th><th class="group" colspan="3">Bytes in flight</th><th class="group" colspan="2">BQL limit</th><th class="group" colspan="2">Queue stopped by</th><th class="group" colspan="2">Average throughput</th><th class="group">Packets</th></tr>
<tr><th class="number">p50</th><th class="number">p95</th><th class="number">peak</th><th class="number">p50</th><th class="number">max</th><th class="number">driver</th><th class="number">BQL</th><th class="number">up</th><th class="number">down</th><th class="number">dropped</th></tr>
</thead>
<tbody>${rows.map((row) => {
    const s = row.statistics;
    return markup`${open(row)}${cells([
      formatBytes(s.inflightBytes.p50),
      formatBytes(s.inflightBytes.p95),
      formatBytes(s.inflightPeakBytes),
      formatBytes(s.limitBytes.p50),
      formatBytes(s.limitBytes.max),
      formatShare(s.driverXoffShare),
      formatShare(s.stackXoffShare),
      formatBitRate(s.throughputBitsPerSecond),
      formatBitRate(s.receivedBitsPerSecond),
      formatCount(s.droppedPackets),
    ])}</tr>`;
  })}</tbody></table></div>`;
}

function cells(values: readonly string[]): Markup[] {
  return values.map((value) => markup`<td class="number">${value}</td>`);
}

function distributionFigure(model: ReportModel): Markup | undefined {
  // An experiment shows those of its arms.
  if (model.experiment?.source === 'scenario') return undefined;
  const chart = renderDistributionChart(model);
  return chart === undefined ? undefined : markup`<figure>${chart}</figure>`;
}

function faults(model: ReportModel): Markup | undefined {
  if (model.faults.length === 0) return undefined;
  const counted = model.faults.filter(({ count }) => count > 0);
  if (counted.length === 0) {
    return markup`<h2>Faults</h2>
<p>No transfer failed, and nothing had to be recovered.</p>`;
  }
  return markup`<h2>Faults</h2>
<table><thead><tr><th>What</th><th class="number">Count</th><th class="number">First</th><th class="number">Last</th><th>Meaning</th></tr></thead>
<tbody>${counted.map(
    ({ fault, count, firstUs, lastUs }) =>
      markup`<tr><td>${faultWords[fault].title}</td><td class="number">${formatCount(count)}</td><td class="number">${formatElapsed(firstUs)}</td><td class="number">${formatElapsed(lastUs)}</td><td>${faultWords[fault].hint}</td></tr>`,
  )}</tbody></table>
<p class="note">How they came about over time is in the CSV and JSON exports, under the names ${counted.map(({ fault }) => fault).join(', ')}.</p>`;
}

function events(model: ReportModel): Markup | undefined {
  const shown = model.events.slice(0, mostEvents);
  if (shown.length === 0) return undefined;
  const rest = model.events.length - shown.length;
  return markup`<h2>Events</h2>
<table><thead><tr><th class="number">No.</th><th class="number">Time</th><th>Kind</th><th>What happened</th></tr></thead>
<tbody>${shown.map(
    ({ timeUs, kind, text }, index) =>
      markup`<tr><td class="number">${index + 1}</td><td class="number">${formatElapsed(timeUs, true)}</td><td>${kind}</td><td><bdi>${text}</bdi></td></tr>`,
  )}</tbody></table>
${rest > 0 ? markup`<p class="note">${formatCount(rest)} more events are in the recording and in the JSON export.</p>` : undefined}`;
}

function problems(model: ReportModel): Markup | undefined {
  if (model.problems.length === 0) return undefined;
  return markup`<h2>Problems</h2>
<ul class="notes">${model.problems.map(({ severity, message, remedy, raisedUs, withdrawnUs }) => {
    const until = withdrawnUs === undefined ? 'until the end' : `until ${formatElapsed(withdrawnUs)}`;
    return markup`<li class="${severity}">${message} <span class="note">From ${formatElapsed(raisedUs)} ${until}.</span>${remedy === undefined ? undefined : markup`<pre>${remedy}</pre>`}</li>`;
  })}</ul>`;
}

function deviceAndSettings(model: ReportModel): Markup {
  const { device, meta, facts, stages, settings } = model;
  const byGroup = (group: string): (readonly [string, string])[] =>
    facts.filter((fact) => fact.group === group).map(({ name, value }) => [name, value] as const);
  const deviceRows: (readonly [string, string | undefined])[] = [
    ['Name', [device.manufacturer, device.name].filter(Boolean).join(' ')],
    ['Device id', device.id],
    ['Speed', speedWords[device.speed]],
    [
      'Kind',
      device.function === 'wwan'
        ? 'cellular modem'
        : device.function === 'ethernet'
          ? 'Ethernet adapter'
          : undefined,
    ],
    ['Description', device.description],
    [
      'Driver',
      device.reason === undefined
        ? (device.minidriver ?? device.kernelDriver)
        : `${device.minidriver ?? 'none'}: ${device.reason}`,
    ],
    ...byGroup('device'),
  ];
  const hostRows: (readonly [string, string | undefined])[] = [
    ['Queuescope', meta.appVersion],
    ['System', `${meta.host.platform} ${meta.host.kernel}, ${meta.host.architecture}`],
    ['Processor', `${meta.host.cpu}, ${formatCount(meta.host.cpuCount)} threads`],
    [
      'Runtime',
      meta.host.electron === undefined
        ? `Node ${meta.host.node}`
        : `Electron ${meta.host.electron}, Node ${meta.host.node}`,
    ],
    ['Recording', `${model.fileName}, ${meta.state}`],
    ['Session', model.sessionId],
    ['Started', formatTime(meta.startedAt)],
    ['Ended', meta.endedAt === undefined ? noValue : formatTime(meta.endedAt)],
  ];
  return markup`<h2>Device, stack and settings</h2>
<div class="columns">
<section><h3>Device</h3>${keyValues(deviceRows)}
<h3>Way to the measurement</h3>${keyValues(stages.map(({ name, status, text }) => [name, text ?? status] as const))}
<h3>Host</h3>${keyValues(hostRows)}</section>
<section><h3>Settings at the start</h3>${keyValues(settingRows(settings, device.mode))}
${model.settingsChanges.length > 1 ? markup`<p class="note">Settings were changed ${times(model.settingsChanges.length - 1)}; the JSON export has them all.</p>` : undefined}
<h3>Driver</h3>${keyValues(byGroup('driver'))}
<h3>Queue</h3>${keyValues(byGroup('queue'))}
<h3>Network</h3>${keyValues(byGroup('network'))}</section>
</div>`;
}

function keyValues(rows: readonly (readonly [string, string | undefined])[]): Markup {
  const present = rows.filter((row) => row[1] !== undefined && row[1] !== '');
  if (present.length === 0) return markup`<p class="note">Nothing is known.</p>`;
  return markup`<table>${present.map(
    ([name, value]) => markup`<tr><th scope="row">${name}</th><td><bdi>${value}</bdi></td></tr>`,
  )}</table>`;
}

function method(model: ReportModel): Markup {
  const settle = model.phases.some((phase) => phase.countedFromUs > phase.startUs)
    ? ' What each phase needs to settle, up to a second or as long as its scenario says, is left out of its statistics.'
    : '';
  return markup`<h2>How these numbers are made</h2>
<p class="note">A percentile p is the smallest measured value that at least p percent of the values do not exceed (RFC 2330, section 11.3); lost pings are counted apart and are in no percentile. The round trip runs from the moment a ping was due to its answer; “in the driver” is the part from its hand-over to the USB stack until that transfer was completed, “in the qdisc” the wait above. Bytes in flight are taken at the end of each sampling interval, the peak is the most there was in between. Throughput counts frames without framing and is averaged over the time that samples cover.${settle} KB and MB are 1,000 and 1,000,000 bytes.</p>`;
}

function pageFooter(model: ReportModel): Markup {
  const made = model.createdAt === undefined ? '' : ` Report made ${formatTime(model.createdAt)}.`;
  const identifiers = model.masked
    ? 'Serial numbers, hardware addresses and subscriber numbers are masked.'
    : 'Serial numbers and hardware addresses are shown.';
  return markup`<footer>Queuescope ${model.meta.appVersion}, recording schema ${model.meta.schemaVersion}.${made} ${identifiers}</footer>`;
}

function lossOf({ lost, probes }: StretchStatistics): string {
  return probes === 0 ? noValue : formatShare(lost / probes);
}

/** "÷ 8.9", "× 1.02": how much of the first is left in the second. */
function ratio(off: number, on: number): string {
  const share = on / off;
  if (!Number.isFinite(share)) return noValue;
  return formatShare(share);
}

function times(count: number): string {
  return count === 1 ? 'once' : `${formatCount(count)} times`;
}

/** "12.3 s", "2 min 05 s", "1 h 02 min". */
function formatLength(us: number): string {
  const seconds = us / 1e6;
  if (seconds < 120) return formatDuration(us);
  const whole = Math.round(seconds);
  const two = (value: number): string => String(value).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
}

/** "2025-11-06 14:30:05 +01:00"; what is no ISO time stays as it is. */
function formatTime(iso: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(iso);
  if (match === null) return iso;
  return `${match[1] ?? ''} ${match[2] ?? ''} ${match[3] === 'Z' ? 'UTC' : (match[3] ?? '')}`;
}

function hex4(value: number): string {
  return value.toString(16).padStart(4, '0');
}
