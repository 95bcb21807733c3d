/**
 * The style of the HTML report. The colours of quantities are those of the window (renderer/styles/tokens.css): one
 * colour a quantity, everywhere. Print is always light.
 */

const light = `
  --page: #ffffff;
  --ink: #171c23;
  --ink-faint: #515b69;
  --line: #d5d9e0;
  --line-strong: #8a93a1;
  --grid: #e7eaee;
  --raised: #f5f6f8;
  --hatch: #17171724;
  --warning: #855400;
  --warning-ground: #fff4dc;
  --error: #b3261e;
  --inflight: #1f7fb8;
  --inflight-fill: #1f7fb85c;
  --inflight-peak-fill: #1f7fb829;
  --limit: #bf4300;
  --backlog: #5e6772;
  --round-trip: #861a62;
  --round-trip-band: #861a6238;
  --driver-queue: #109a73;
  --driver-queue-fill: #b9e6d8;
  --qdisc-wait: #946200;
  --qdisc-wait-fill: #ecba6e;
  --up: #4338a5;
  --down: #7d6400;`;

const dark = `
  --page: #15181d;
  --ink: #e9ecf1;
  --ink-faint: #a5aebb;
  --line: #313843;
  --line-strong: #6b7584;
  --grid: #282e37;
  --raised: #1b1f25;
  --hatch: #ffffff24;
  --warning: #f3bd4f;
  --warning-ground: #33290f;
  --error: #ff8f85;
  --inflight: #56b4e9;
  --inflight-fill: #56b4e95c;
  --inflight-peak-fill: #56b4e929;
  --limit: #ff8c42;
  --backlog: #c6cdd6;
  --round-trip: #f58fcb;
  --round-trip-band: #f58fcb3d;
  --driver-queue: #1a9c75;
  --driver-queue-fill: #0f4a39;
  --qdisc-wait: #ffd978;
  --qdisc-wait-fill: #80611d;
  --up: #a59cff;
  --down: #ddc94a;`;

export const reportStyle = `
:root { color-scheme: light dark;${light}
}
@media screen and (prefers-color-scheme: dark) {
  :root {${dark}
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto;
  padding: 28px 24px 40px;
  max-width: 1008px;
  background: var(--page);
  color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
  font-variant-numeric: tabular-nums;
}
header { border-bottom: 2px solid var(--ink); padding-bottom: 10px; }
.kind { margin: 0; display: flex; justify-content: space-between; gap: 16px; color: var(--ink-faint); font-size: 12px; }
h1 { margin: 4px 0 0; font-size: 26px; line-height: 1.2; font-weight: 650; overflow-wrap: anywhere; }
.identity { margin: 4px 0 0; color: var(--ink-faint); overflow-wrap: anywhere; }
h2 { margin: 30px 0 8px; font-size: 15px; font-weight: 650; }
h3 { margin: 16px 0 4px; font-size: 13px; font-weight: 650; }
p { margin: 6px 0; }
.headline { margin: 18px 0 4px; font-size: 19px; line-height: 1.35; font-weight: 600; max-width: 46em; text-wrap: pretty; }
.more { margin: 4px 0 14px; padding: 0; list-style: none; color: var(--ink); max-width: 62em; }
.more li { margin: 2px 0; }
.note { font-weight: 400; color: var(--ink-faint); font-size: 12px; max-width: 78em; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; font-weight: 600; }
th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); }
thead th { vertical-align: bottom; border-bottom: 1px solid var(--line-strong); color: var(--ink-faint); font-size: 12px; line-height: 1.3; }
th, td { vertical-align: baseline; }
td { overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
th.number:last-child, td.number:last-child { padding-right: 0; }
th.group { border-bottom: 1px solid var(--line); text-align: center; padding-right: 0; }
tr.pooled td, tr.pooled th { background: var(--raised); }
tr.first-pooled td, tr.first-pooled th { border-top: 1px solid var(--line-strong); }
.compare { max-width: 760px; margin: 8px 0 0; }
.compare td:first-child { color: var(--ink-faint); }
.compare .number { font-size: 15px; }
.verdict { margin: 6px 0; padding: 8px 12px; border-left: 3px solid var(--driver-queue); background: var(--raised); font-size: 15px; max-width: 62em; text-wrap: pretty; }
.verdict.open { border-left-color: var(--warning); }
.verdict b { display: block; font-size: 12px; font-weight: 650; text-transform: uppercase; letter-spacing: 0.04em; color: var(--ink-faint); }
.calibration { padding: 6px 10px; border-left: 3px solid var(--warning); background: var(--warning-ground); max-width: 72em; }
.differences, .scores { margin: 8px 0 0; }
.scores { max-width: 820px; }
.scroll { overflow-x: auto; }
.state { display: inline-block; min-width: 2.2em; }
.notes { margin: 0; padding: 0; list-style: none; }
.notes li { margin: 6px 0; padding: 6px 10px; border-left: 3px solid var(--line-strong); background: var(--raised); overflow-wrap: anywhere; }
.notes li.warning { border-left-color: var(--warning); background: var(--warning-ground); }
.notes li.error { border-left-color: var(--error); }
.notes pre { margin: 4px 0 0; white-space: pre-wrap; font: 12px/1.4 ui-monospace, 'SF Mono', 'DejaVu Sans Mono', monospace; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 0 36px; }
.columns th { width: 38%; color: var(--ink-faint); font-weight: 400; }
footer { margin-top: 32px; padding-top: 8px; border-top: 1px solid var(--line); color: var(--ink-faint); font-size: 12px; }

figure { margin: 10px 0 0; }
figcaption { margin-top: 2px; }
.chart-head { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 24px; margin: 10px 5.6% 1px; font-size: 12px; }
.chart-head b { font-size: 13px; font-weight: 650; }
.unit { color: var(--ink-faint); }
.legend { display: flex; flex-wrap: wrap; gap: 0 14px; }
.legend > span { display: inline-flex; align-items: center; gap: 5px; white-space: nowrap; }
.legend svg { flex: none; }
.charts { display: block; width: 100%; height: auto; font-size: 11px; }
.charts text { fill: var(--ink); }
.charts .tick, .charts .event { fill: var(--ink-faint); }
.charts .event { font-size: 9.5px; }
path { fill: none; }
.plot { fill: none; stroke: var(--line-strong); stroke-width: 1; }
.grid { stroke: var(--grid); stroke-width: 1; }
.edge { stroke: var(--line-strong); stroke-width: 1; stroke-dasharray: 2 3; }
.hatch { stroke: var(--hatch); stroke-width: 3; }
.phase { fill: var(--raised); stroke: var(--line-strong); stroke-width: 1; }
.event-mark { stroke: var(--ink-faint); stroke-width: 1.2; }
.fill-inflight { fill: var(--inflight-fill); }
.fill-inflight-peak { fill: var(--inflight-peak-fill); }
.fill-round-trip-band { fill: var(--round-trip-band); }
.fill-driver-queue { fill: var(--driver-queue-fill); }
.fill-qdisc-wait { fill: var(--qdisc-wait-fill); }
.line-inflight { stroke: var(--inflight); stroke-width: 1.2; stroke-linejoin: round; }
.line-limit { stroke: var(--limit); stroke-width: 1.8; stroke-linejoin: round; }
.line-backlog { stroke: var(--backlog); stroke-width: 1.3; stroke-dasharray: 5 3; }
.line-round-trip { stroke: var(--round-trip); stroke-width: 2; stroke-linejoin: round; }
.dots-round-trip { stroke: var(--round-trip); stroke-width: 2.6; stroke-linecap: round; opacity: 0.75; }
.line-driver-queue { stroke: var(--driver-queue); stroke-width: 1; stroke-linejoin: round; }
.line-qdisc-wait { stroke: var(--qdisc-wait); stroke-width: 1; stroke-linejoin: round; }
.line-lost { stroke: var(--error); stroke-width: 1.6; }
.line-up { stroke: var(--up); stroke-width: 1.4; stroke-linejoin: round; }
.line-down { stroke: var(--down); stroke-width: 1.4; stroke-linejoin: round; stroke-dasharray: 7 2; }
.line-cdf-off { stroke: var(--limit); stroke-width: 2; }
.line-cdf-on { stroke: var(--inflight); stroke-width: 2; stroke-dasharray: 8 2; }
.line-cdf-idle { stroke: var(--ink-faint); stroke-width: 1.6; stroke-dasharray: 2 3; }

@media (max-width: 640px) {
  .columns { grid-template-columns: 1fr; }
}
@page { size: A4; margin: 14mm 13mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10px; line-height: 1.36; }
  h1 { font-size: 20px; }
  .headline { font-size: 14.5px; margin: 10px 0 2px; }
  .more { margin: 2px 0 6px; }
  .more li { margin: 0; }
  .notes li { margin: 2px 0; padding: 2px 8px; }
  h2 { font-size: 12px; margin: 9px 0 3px; break-after: avoid; }
  h3 { font-size: 10.5px; break-after: avoid; }
  table { font-size: 9.5px; }
  thead th, .note, footer, .kind, .chart-head { font-size: 9px; }
  .chart-head b { font-size: 10.5px; }
  .compare .number { font-size: 10.5px; }
  .chart-head { margin-top: 5px; }
  figure { margin-top: 4px; }
  th, td { padding: 2.5px 7px 2.5px 0; }
  figure, tr, .notes li { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;
