import type { ColdStartMarks } from "../protocol/cold-start.ts";
import { InferenceError } from "../protocol/error.ts";
import type { JobError } from "../protocol/job.ts";
import type { Redis } from "../redis/connection.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { names } from "./names.ts";
import type { PoolLink } from "./pool-link.ts";
import { type PoolTimes, tellPoolTimes } from "./pool-trace.ts";

/** What a pool worker tells of an attempt at a durable request that is traced. */
export interface TracedAttempt {
  /** Of the job. */
  readonly id: string;
  /** Unlike that of any other. */
  readonly attempt: string;
  /** W3C trace context of what accepted the job. */
  readonly traceparent: string;
  /** The id that the client gave the request. */
  readonly request: string;
  readonly model: string;
  /** "" when none has answered. */
  readonly version: string;
  /** Since when it had waited, in milliseconds since the epoch. */
  readonly queuedAt: number;
  /** Absent when the request did not get as far as its version. */
  readonly times?: PoolTimes;
  readonly coldStart?: ColdStartMarks;
  readonly error?: JobError;
}

export interface JobTracesOptions {
  readonly commands: Redis;
  readonly links: readonly Pick<PoolLink, "channel">[];
  readonly tracer: Pick<Tracer, "resume">;
}

/** Longer than gateways hear of the same attempt after each other. */
const claimedMilliseconds = 60_000;

/**
 * Has the traces of requests that were accepted go on with what pool workers tell of them. All gateways hear it and one
 * tells it, whichever that is: the one that accepted the request may be gone. The function that is given back ends it.
 */
export function traceJobs({ commands, links, tracer }: JobTracesOptions): () => void {
  const stops = links.map(({ channel }) =>
    channel.on("attempt", (attempt) => {
      const heardAt = performance.now();
      const key = names.tracedAttempt(attempt.attempt);
      commands
        .set(key, "", "PX", claimedMilliseconds, "NX")
        // A trace that cannot be told is lost, as a word that nobody hears is.
        .then((claimed) => claimed && tell(tracer, attempt, heardAt))
        .catch(() => {});
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}

function tell(tracer: JobTracesOptions["tracer"], told: TracedAttempt, heardAt: number): void {
  const { id: job, traceparent, times, coldStart } = told;
  const startAt = Math.min(heardAt, told.queuedAt - performance.timeOrigin);
  const trace = tracer.resume({ traceparent, job, startAt });
  if (!trace) return;
  const model = { name: told.model, version: told.version };
  trace.enqueued({ model, id: told.request, inputs: [] }, startAt);
  if (coldStart) trace.startedCold(coldStart);
  if (times) tellPoolTimes(trace, times, startAt, heardAt);
  const error = told.error && new InferenceError(told.error.code, told.error.message);
  trace.ended(heardAt, error);
  if (error) trace.failed(error);
  trace.close(heardAt);
}
