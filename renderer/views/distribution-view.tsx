import { formatCount } from '../../src/base/units.ts';
import type { ArmResult } from '../../src/contract/experiment.ts';
import { distributionScale } from '../charts/distribution-scale.ts';

const width = 720;
const height = 220;
const left = 40;
const right = 704;
const top = 6;
const bottom = 186;

/** Which share of the round trips took at most how long: a curve for each arm under load, and one without load. */
export function DistributionView({ arms }: { readonly arms: readonly ArmResult[] }) {
  const drawn = arms.filter(({ rttPercentilesUs }) => rttPercentilesUs.length > 1);
  if (drawn.length === 0) return null;
  const values = drawn.flatMap(({ rttPercentilesUs }) => [
    rttPercentilesUs[0] ?? 0,
    rttPercentilesUs.at(-1) ?? 0,
  ]);
  const scale = distributionScale(Math.min(...values), Math.max(...values), left, right);
  const y = (share: number): number => bottom - share * (bottom - top);
  const loaded = drawn.filter(({ direction }) => direction !== 'idle');
  const curveClass = (arm: ArmResult): string =>
    arm.direction === 'idle' ? 'curve curve-idle' : `curve curve-${loaded.indexOf(arm) % 4}`;
  return (
    <figure class="distribution">
      <figcaption>
        <b>Distribution of the round trip</b>
        {drawn.map((arm) => (
          <span key={`${arm.arm} ${arm.direction}`} class="legend-entry">
            <svg width="26" height="10" aria-hidden="true">
              <path class={curveClass(arm)} d="M1 5H25" />
            </svg>
            {nameOf(arm, loaded)}, {formatCount(arm.probes - arm.lost)} pings
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label="Distribution of the round trip">
        <rect class="plot" x={left} y={top} width={right - left} height={bottom - top} />
        {scale.ticks.map(({ us, label }) => (
          <g key={label}>
            <path class="grid" d={`M${scale.at(us)} ${top}V${bottom}`} />
            <text x={scale.at(us)} y={bottom + 15} text-anchor="middle">
              {label}
            </text>
          </g>
        ))}
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share}>
            <path class="grid" d={`M${left} ${y(share)}H${right}`} />
            <text x={left - 5} y={y(share) + 4} text-anchor="end">
              {share * 100} %
            </text>
          </g>
        ))}
        <text x={right} y={bottom + 30} text-anchor="end">
          round trip, ms{scale.logarithmic ? ', logarithmic' : ''}
        </text>
        {drawn.map((arm) => (
          <path
            key={`${arm.arm} ${arm.direction}`}
            class={curveClass(arm)}
            d={arm.rttPercentilesUs
              .map(
                (us, percentile) =>
                  `${percentile === 0 ? 'M' : 'L'}${scale.at(us).toFixed(1)} ${y(percentile / 100).toFixed(1)}`,
              )
              .join('')}
          />
        ))}
      </svg>
    </figure>
  );
}

function nameOf({ arm, direction }: ArmResult, loaded: readonly ArmResult[]): string {
  return direction !== 'idle' && loaded.some((other) => other.direction !== direction)
    ? `${arm}, ${direction}`
    : arm;
}
