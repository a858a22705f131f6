import type { Call, Principal } from "./call.ts";
import type { StatusCode } from "./error.ts";
import type { BinaryOutputs } from "./infer-json.ts";
import type { InferenceResponse } from "./inference.ts";
import { progressStates } from "./progress.ts";
import type { ValidInferenceRequest } from "./valid-request.ts";
import type { DeliveryAttempt } from "./webhook.ts";

/** What may be said of a durable request: first how far it is, then how it ended. */
export const jobStates = [...progressStates, "done", "failed", "cancelled"] as const;
export type JobState = (typeof jobStates)[number];

const endStates: ReadonlySet<JobState> = new Set(["done", "failed", "cancelled"]);

/** True when nothing will come of the job any more, unless somebody replays it. */
export function hasEnded({ state }: Pick<Job, "state">): boolean {
  return endStates.has(state);
}

/** A durable request: whoever asks later learns what came of it. Times are milliseconds since the epoch. */
export interface Job {
  /** Nobody guesses it. */
  readonly id: string;
  readonly state: JobState;
  readonly modelName: string;
  /** As the client asked for it; "" stands for the highest one that was ready. */
  readonly modelVersion: string;
  readonly createdAt: number;
  /** Of its last attempt. */
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly attempts: number;
  /** Grows whenever its state changes. */
  readonly changes: number;
  /** Why it has failed, or why its last attempt has. */
  readonly error?: JobError;
  /** How much of its model's files has been fetched, where that is what it waits for. */
  readonly percent?: number;
}

export interface JobError {
  readonly code: StatusCode;
  readonly message: string;
}

/** What came of a job that is done. */
export interface JobAnswer {
  readonly response: InferenceResponse;
  /** How the request wanted its answer. */
  readonly binaryOutputs: BinaryOutputs;
}

export interface NewJob {
  readonly principal: Principal;
  readonly request: ValidInferenceRequest;
  readonly binaryOutputs: BinaryOutputs;
  /** An idempotency key leads to it: its answer is kept at least as long as the key. */
  readonly keyed: boolean;
  /** URL that is told when it has ended. */
  readonly webhook?: string;
  /** W3C trace context of what accepted it, where that is traced. */
  readonly traceparent?: string | undefined;
}

/** What an idempotency key stands for. */
export interface KeyClaim {
  readonly id: string;
  /** Of the request: equal texts, equal requests. */
  readonly digest: string;
}

export interface JobPage {
  /** The newest first. */
  readonly jobs: readonly Job[];
  /** Where the next page begins; absent on the last one. */
  readonly cursor?: string;
}

/**
 * What a job survives once it was accepted: "always" everything but the loss of a disk, "everysec" all but the loss of the
 * last second, "none" nothing; "unknown" where the keeper does not say.
 */
export type JobDurability = "always" | "everysec" | "none" | "unknown";

/**
 * Keeps durable requests and has them run. A job belongs to the principal who submitted it, and is not there for others.
 * Every method rejects with an InferenceError.
 */
export interface Jobs {
  readonly durability: JobDurability;
  /** An id for a new job. */
  newId(modelName: string): string;
  /** Binds a key of the principal to a job unless it is bound already; gives what it is bound to. */
  claim(principal: Principal, key: string, claim: KeyClaim): Promise<KeyClaim>;
  /** Resolves when the job is as durable as it will be. One that is there already stays as it is. */
  submit(id: string, job: NewJob): Promise<Job>;
  find(principal: Principal, id: string): Promise<Job | undefined>;
  /** Undefined unless the job is done, and its answer is still kept. */
  answer(principal: Principal, id: string): Promise<JobAnswer | undefined>;
  /** @param cursor of the page before */
  list(principal: Principal, limit: number, cursor?: string): Promise<JobPage>;
  /** Ends a job that has not ended; gives what it is then. */
  cancel(principal: Principal, id: string): Promise<Job | undefined>;
  /** Runs a failed job again, which is charged as a new one is; leaves all others as they are. */
  replay(call: Pick<Call, "principal" | "permit">, id: string): Promise<Job | undefined>;
  /** Attempts to tell its receiver of its end, the first one first; of a job that was replayed those of each end. */
  deliveries(principal: Principal, id: string): Promise<readonly DeliveryAttempt[]>;
  /** Resolves when the job may have changed, or the signal says that nobody waits. */
  changed(id: string, signal: AbortSignal): Promise<void>;
  /** Says that this process is about to end: who only watches had better go, and come back to another one. */
  readonly closing: AbortSignal;
  close(): void;
}
