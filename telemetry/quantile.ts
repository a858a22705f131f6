/**
 * Estimates a quantile from cumulative bucket counts, as Prometheus' histogram_quantile does: linear within a bucket.
 * NaN without observations; the last bound for what lies beyond it.
 *
 * @param bounds upper bounds, ascending
 * @param cumulative observations up to each bound, and last of all
 */
export function quantileOf(
  quantile: number,
  bounds: readonly number[],
  cumulative: readonly number[],
): number {
  const total = cumulative.at(-1) ?? 0;
  if (total === 0) return Number.NaN;
  const rank = quantile * total;
  const bucket = cumulative.findIndex((count) => count >= rank);
  const upper = bounds[bucket];
  if (upper === undefined) return bounds.at(-1) ?? Number.NaN;
  const below = bucket === 0 ? 0 : (cumulative[bucket - 1] ?? 0);
  const lower = bucket === 0 ? 0 : (bounds[bucket - 1] ?? 0);
  const inside = (cumulative[bucket] ?? 0) - below;
  return inside === 0 ? lower : lower + (upper - lower) * ((rank - below) / inside);
}
