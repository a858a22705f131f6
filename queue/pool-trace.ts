import type { ComputeMoments, RequestTrace } from "../protocol/request-trace.ts";

/** What a pool worker tells of a request that is traced; milliseconds since the epoch, on its machine's clock. */
export interface PoolTimes {
  readonly takenAt: number;
  readonly repliedAt: number;
  /** Of each execution since the reply before: the beginning of its phases, and its end. */
  readonly computes: readonly ComputeTimes[];
}

type ComputeTimes = readonly [start: number, inputEnd: number, outputStart: number, end: number];

/** Gathers in a pool worker what the gateway's trace of a request wants to know. */
export class PoolTrace implements RequestTrace {
  readonly traceparent: string | undefined;
  readonly #takenAt: number;
  #computes: ComputeTimes[] = [];

  /** @param traceparent "" for a trace that nobody else has part in */
  constructor(traceparent: string) {
    this.traceparent = traceparent || undefined;
    this.#takenAt = onEpoch(performance.now());
  }

  computed({ startAt, inputEndAt, outputStartAt, endAt }: ComputeMoments): void {
    const [start, inputEnd] = [onEpoch(startAt), onEpoch(inputEndAt)];
    this.#computes.push([start, inputEnd, onEpoch(outputStartAt), onEpoch(endAt)]);
  }

  /** For the reply that is sent now. */
  times(): PoolTimes {
    const computes = this.#computes;
    this.#computes = [];
    return { takenAt: this.#takenAt, repliedAt: onEpoch(performance.now()), computes };
  }

  /** A request that is split, or rescheduled, has one trace. */
  step(): RequestTrace {
    return this;
  }

  // All else the gateway sees itself.
  mark(): void {}
  enqueued(): void {}
  arrived(): void {}
  startedCold(): void {}
  responded(): void {}
  ended(): void {}
  failed(): void {}
  close(): void {}
}

/**
 * Tells a gateway's trace what a pool worker has told. Clocks of machines differ: the pool worker's times are moved so
 * that it had the request after it was sent and before its reply came.
 *
 * @param sentAt and the others: `performance.now()` of this process, in milliseconds
 */
export function tellPoolTimes(
  trace: RequestTrace,
  { takenAt, repliedAt, computes }: PoolTimes,
  sentAt: number,
  receivedAt: number,
): void {
  const latest = receivedAt - repliedAt;
  const shift = Math.min(latest, Math.max(sentAt - takenAt, -performance.timeOrigin));
  trace.arrived(takenAt + shift);
  for (const [start, inputEnd, outputStart, end] of computes) {
    trace.computed({
      startAt: start + shift,
      inputEndAt: inputEnd + shift,
      outputStartAt: outputStart + shift,
      endAt: end + shift,
    });
  }
}

function onEpoch(at: number): number {
  return performance.timeOrigin + at;
}
