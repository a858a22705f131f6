/**
 * Upper bounds in microseconds, three a decade: an identity model's execution falls into the first, a cold start into the
 * last. A quantile read from them is off by less than half its value, and twenty series a phase stay cheap to scrape.
 */
export const latencyBoundsMicroseconds: readonly number[] = [
  50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
  1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 30_000_000, 60_000_000,
];

/** Counts durations by size on the hot path, so that a scrape can tell quantiles; it allocates nothing and never searches. */
export class LatencyHistogram {
  readonly #counts = new Float64Array(latencyBoundsMicroseconds.length + 1);

  /** Counts a duration, as often as so many requests shared it. */
  observe(microseconds: number, times = 1): void {
    let bucket = firstBucket[32 - Math.clz32(Math.min(microseconds, 0xffff_ffff))] ?? 0;
    while (microseconds > (latencyBoundsMicroseconds[bucket] ?? Infinity)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + times;
  }

  /** How many durations were at most each of the bounds, and last how many there were at all. */
  cumulative(): readonly number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => (total += count));
  }
}

/** By bit length of a duration: the first bucket that any duration of that length can fall into. */
const firstBucket = Array.from({ length: 33 }, (_, bits) => {
  const smallest = bits === 0 ? 0 : 2 ** (bits - 1);
  const bucket = latencyBoundsMicroseconds.findIndex((bound) => smallest <= bound);
  return bucket === -1 ? latencyBoundsMicroseconds.length : bucket;
});
