/** The steps of a cold start, in their order. */
export const coldStartPhases = [
  "schedule",
  "spawn",
  "fetch",
  "load",
  "warmup",
  "first_infer",
] as const;
export type ColdStartPhase = (typeof coldStartPhases)[number];

/** When a pool worker began each step of bringing up a version; milliseconds since the epoch, so that others know them. */
export interface ColdStartMarks {
  /** Somebody decided that the pool worker should be. */
  readonly decidedAt: number;
  /** It was there, and looked for the version's files. */
  readonly fetchAt: number;
  readonly loadAt: number;
  readonly warmupAt: number;
  /** The version could answer. */
  readonly readyAt: number;
}

/** What each step took of one request's time, in milliseconds. */
export type ColdStartDurations = Readonly<Record<ColdStartPhase, number>>;

/**
 * Tells how the time of a request that waited for a cold start was spent. Every moment from its receipt to its answer
 * belongs to one step, so that the steps add up; what was over before the request came took nothing of its time.
 */
export function coldStartDurations(
  marks: ColdStartMarks,
  receivedAt: number,
  answeredAt: number,
): ColdStartDurations {
  const { decidedAt, fetchAt, loadAt, warmupAt, readyAt } = marks;
  let reached = receivedAt;
  const until = (mark: number): number => {
    const from = reached;
    // Clocks of two machines differ: a step may seem to end outside of the request's time.
    reached = Math.max(from, Math.min(mark, answeredAt));
    return reached - from;
  };
  return {
    // Nobody had to decide on a pool worker that was there: the request waited for its turn.
    schedule: until(decidedAt > receivedAt ? decidedAt : fetchAt),
    spawn: until(fetchAt),
    fetch: until(loadAt),
    load: until(warmupAt),
    warmup: until(readyAt),
    first_infer: until(answeredAt),
  };
}
