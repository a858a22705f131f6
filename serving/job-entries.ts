import type { Call, Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { BinaryOutputs } from "../protocol/infer-json.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import { hasEnded, type Job, type KeyClaim } from "../protocol/job.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";
import type { DeliveryAttempt } from "../protocol/webhook.ts";

/** All that is known of a job in memory. */
export interface JobEntry {
  job: Job;
  readonly principal: Principal;
  readonly request: ValidInferenceRequest;
  readonly binaryOutputs: BinaryOutputs;
  readonly keyed: boolean;
  readonly webhook?: string | undefined;
  readonly traceparent?: string | undefined;
  /** Attempts to tell its receiver. */
  readonly deliveries: DeliveryAttempt[];
  /** Of its request, and of its result instead when that is there. */
  bytes: number;
  response?: InferenceResponse;
  /** Of its last attempt. */
  call?: Call;
}

export interface EntryLimits {
  readonly resultMilliseconds: number;
  readonly failedMilliseconds: number;
  readonly keyMilliseconds: number;
  readonly maxUnfinished: number;
  readonly maxBytes: number;
}

interface DatedClaim extends KeyClaim {
  readonly until: number;
}

const sweepMilliseconds = 1000;

/** Holds the jobs of one process for as long as they are kept, and wakes those who wait for a change of one. */
export class JobEntries {
  readonly #limits: EntryLimits;
  /** The oldest first. */
  readonly #entries = new Map<string, JobEntry>();
  readonly #claims = new Map<string, DatedClaim>();
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();
  readonly #timer: NodeJS.Timeout;
  #unfinished = 0;
  #bytes = 0;

  constructor(limits: EntryLimits) {
    this.#limits = limits;
    this.#timer = setInterval(() => this.#sweep(Date.now()), sweepMilliseconds);
  }

  get(id: string): JobEntry | undefined {
    return this.#entries.get(id);
  }

  newest(): readonly JobEntry[] {
    return [...this.#entries.values()].toReversed();
  }

  /** Binds a subject unless it is bound; gives what it is bound to. */
  claim(subject: string, claim: KeyClaim, now: number): KeyClaim {
    const bound = this.#claims.get(subject);
    if (bound && bound.until > now) return bound;
    this.#claims.set(subject, { ...claim, until: now + this.#limits.keyMilliseconds });
    return claim;
  }

  /** Jobs that ended longest ago make room; refuses one for which there is none. */
  add(entry: JobEntry): void {
    const { maxUnfinished, maxBytes } = this.#limits;
    if (this.#unfinished >= maxUnfinished) {
      throw full(`${maxUnfinished} jobs that have not ended`, "--job-max-unfinished");
    }
    this.#makeRoom(entry.bytes);
    if (this.#bytes + entry.bytes > maxBytes) {
      throw full(`${maxBytes} bytes of jobs`, "--job-memory-mb");
    }
    this.#entries.set(entry.job.id, entry);
    this.#bytes += entry.bytes;
    this.#unfinished++;
  }

  resize(entry: JobEntry, bytes: number): void {
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    this.#makeRoom(0);
  }

  change(entry: JobEntry, change: Partial<Job>): void {
    const ended = hasEnded(entry.job);
    entry.job = { ...entry.job, ...change, changes: entry.job.changes + 1 };
    this.#unfinished += Number(ended) - Number(hasEnded(entry.job));
    this.#waiting.get(entry.job.id)?.resolve();
    this.#waiting.delete(entry.job.id);
  }

  /** Resolves at the next change, or when the signal says that nobody waits. */
  async changed(id: string, signal: AbortSignal): Promise<void> {
    const next = this.#waiting.get(id) ?? Promise.withResolvers<void>();
    this.#waiting.set(id, next);
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const end = (): void => resolve();
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    await Promise.race([next.promise, over]);
    signal.removeEventListener("abort", end);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #makeRoom(bytes: number): void {
    if (this.#bytes + bytes <= this.#limits.maxBytes) return;
    for (const entry of this.#entries.values()) {
      if (this.#bytes + bytes <= this.#limits.maxBytes) return;
      if (hasEnded(entry.job)) this.#remove(entry);
    }
  }

  #sweep(now: number): void {
    for (const entry of this.#entries.values()) {
      if (now > this.#keptUntil(entry)) this.#remove(entry);
    }
    for (const [subject, { until }] of this.#claims) if (now > until) this.#claims.delete(subject);
  }

  #keptUntil({ job, keyed }: JobEntry): number {
    if (job.endedAt === undefined) return Infinity;
    const { resultMilliseconds, failedMilliseconds, keyMilliseconds } = this.#limits;
    const kept = job.state === "failed" ? failedMilliseconds : resultMilliseconds;
    return job.endedAt + Math.max(kept, keyed ? keyMilliseconds : 0);
  }

  #remove({ job, bytes }: JobEntry): void {
    this.#entries.delete(job.id);
    this.#waiting.delete(job.id);
    this.#bytes -= bytes;
  }
}

function full(bound: string, flag: string): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    `jobs: no room for another, expected at most ${bound}. Use ${flag} to increase the limit.`,
    { retryAfterSeconds: 1 },
  );
}
