import type { Principal } from "./call.ts";
import { InferenceError, StatusCode } from "./error.ts";
import type { Job, JobState } from "./job.ts";

/** One thing that a receiver is to be told, as often as it takes. */
export interface Delivery {
  /** The same at each attempt: a receiver that is told twice sees it by that. */
  readonly id: string;
  readonly type: WebhookType;
  readonly url: string;
  /** Whose secrets sign it. */
  readonly tenant: string;
  /** JSON text. */
  readonly body: string;
  /** W3C trace context of what accepted the job, where that is traced. */
  readonly traceparent?: string | undefined;
  /** When it came to pass, in milliseconds since the epoch. */
  readonly since: number;
}

/** What a job can come to. */
export type WebhookType = "job.completed" | "job.failed" | "job.cancelled";

/**
 * - delivered: the receiver has it;
 * - retry: there will be another attempt;
 * - gone: the receiver wants nothing any more;
 * - exhausted: it was the last attempt.
 */
export const webhookOutcomes = ["delivered", "retry", "gone", "exhausted"] as const;
export type WebhookOutcome = (typeof webhookOutcomes)[number];

/** What came of one attempt. Times are milliseconds since the epoch. */
export interface DeliveryAttempt {
  readonly id: string;
  readonly type: WebhookType;
  /** From 1 on. */
  readonly attempt: number;
  readonly at: number;
  readonly milliseconds: number;
  /** What the receiver answered, if it did. */
  readonly status?: number;
  readonly outcome: WebhookOutcome;
  /** Why it was not delivered. */
  readonly why?: string;
  /** When the next one comes. */
  readonly nextAt?: number;
}

/** Sends what receivers are to be told. */
export interface WebhookSender {
  /** With so many webhooks of a tenant that are not delivered, no further job of the tenant may want one. */
  readonly maxUndelivered: number;
  /** Throws INVALID_ARG unless jobs of the tenant may be told there; who the name stands for is seen later. */
  check(url: string, tenant: string): void;
  /** Tries once; undefined when so much is on its way to the target, or of the tenant, that this must wait. Never rejects. */
  attempt(delivery: Delivery, attempt: number): Promise<DeliveryAttempt | undefined>;
}

/** So many attempts of a job can be looked up, the last ones. */
export const keptAttempts = 100;

/** Throws unless one more job of the principal may be told of at the URL. @param undelivered how many of its tenant there are */
export function checkWebhook(
  sender: Omit<WebhookSender, "attempt"> | undefined,
  url: string,
  { tenant }: Principal,
  undelivered: number,
): void {
  if (!sender) {
    const text = "Webhook-URL: this server sends no webhooks; --webhook-secret-file lets it";
    throw new InferenceError(StatusCode.Unsupported, text);
  }
  sender.check(url, tenant);
  if (undelivered < sender.maxUndelivered) return;
  throw new InferenceError(
    StatusCode.Unavailable,
    `webhooks: given one more than ${sender.maxUndelivered} of tenant '${tenant}' that are not delivered, expected at most so many. ` +
      "Use --webhook-max-undelivered to increase the limit.",
    { retryAfterSeconds: 60 },
  );
}

/** Who is told of a job, and in whose name. */
type WebhookTarget = Pick<Delivery, "url" | "tenant" | "traceparent">;

/** What is told of a job; undefined for one that has not ended. Its tensors stay where only its owner can fetch them. */
export function jobDelivery(job: Job, to: WebhookTarget): Delivery | undefined {
  const { id, state, modelName, modelVersion, error, endedAt = job.createdAt } = job;
  const type = types[state];
  if (!type) return undefined;
  const data = {
    job_id: id,
    state,
    model_name: modelName,
    ...(modelVersion !== "" && { model_version: modelVersion }),
    created_at: time(job.createdAt),
    ended_at: time(endedAt),
    attempts: job.attempts,
    ...(state === "done" && { result: `/v2/jobs/${id}/result` }),
    ...(error && { error }),
  };
  const body = JSON.stringify({ type, timestamp: time(endedAt), data });
  // A job that is replayed ends again, which is another thing to tell.
  return { ...to, id: `${id}_${job.changes}`, type, body, since: endedAt };
}

const types: Readonly<Partial<Record<JobState, WebhookType>>> = {
  done: "job.completed",
  failed: "job.failed",
  cancelled: "job.cancelled",
};

function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
