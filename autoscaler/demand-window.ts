/** The demand at one moment; it speaks for the time since the sample before it. */
export interface DemandSample {
  /** Epoch milliseconds. */
  readonly at: number;
  /** Unanswered requests. */
  readonly demand: number;
}

/** So many samples make a window, at most twice as many are kept. */
const samplesPerWindow = 100;

/** Remembers the demand of the last while, so that averages can be taken: gives the samples with one more. */
export function withSample(
  samples: readonly DemandSample[],
  sample: DemandSample,
  windowMilliseconds: number,
): readonly DemandSample[] {
  const last = samples.at(-1);
  if (!last) return [sample];
  const beforeLast = samples.at(-2);
  const fine = beforeLast && last.at - beforeLast.at < windowMilliseconds / samplesPerWindow;
  const kept = fine ? samples.slice(0, -1) : samples;
  const merged = fine
    ? { at: sample.at, demand: averageDemand([beforeLast, last, sample], sample.at, Infinity) }
    : sample;
  const start = sample.at - windowMilliseconds;
  // The last sample before the window says where the time of the first one inside begins.
  const first = Math.max(
    0,
    kept.findLastIndex(({ at }) => at <= start),
  );
  return [...kept.slice(first), merged];
}

/** The mean demand over the last while, each sample weighted by the time that it speaks for. */
export function averageDemand(
  samples: readonly DemandSample[],
  now: number,
  windowMilliseconds: number,
): number {
  const start = now - windowMilliseconds;
  let from = Infinity;
  let requestMilliseconds = 0;
  let milliseconds = 0;
  for (const { at, demand } of samples) {
    const span = Math.max(0, at - Math.max(from, start));
    requestMilliseconds += span * demand;
    milliseconds += span;
    from = at;
  }
  return milliseconds > 0 ? requestMilliseconds / milliseconds : (samples.at(-1)?.demand ?? 0);
}
