import type { Job, JobDurability } from "../../protocol/job.ts";
import type { DeliveryAttempt } from "../../protocol/webhook.ts";

/** A job as clients read it. */
export function jobJson(job: Job): object {
  const { error, percent } = job;
  return {
    id: job.id,
    state: job.state,
    model_name: job.modelName,
    ...(job.modelVersion !== "" && { model_version: job.modelVersion }),
    created_at: time(job.createdAt),
    ...(job.startedAt !== undefined && { started_at: time(job.startedAt) }),
    ...(job.endedAt !== undefined && { ended_at: time(job.endedAt) }),
    attempts: job.attempts,
    ...(percent !== undefined && { progress: { percent } }),
    ...(error && { error }),
  };
}

/** An attempt to tell a receiver, likewise. */
export function deliveryJson(attempt: DeliveryAttempt): object {
  const { id, type, outcome, status, why, at, milliseconds, nextAt } = attempt;
  return {
    webhook_id: id,
    type,
    attempt: attempt.attempt,
    at: time(at),
    milliseconds,
    ...(status !== undefined && { status }),
    outcome,
    ...(why !== undefined && { why }),
    ...(nextAt !== undefined && { next_at: time(nextAt) }),
  };
}

/** A job for who has just submitted it, with what it survives. */
export function acceptedJson(job: Job, durability: JobDurability): object {
  const canBeLost = losses[durability];
  return {
    ...jobJson(job),
    durability,
    ...(canBeLost !== undefined && { can_be_lost: canBeLost }),
  };
}

const losses: Readonly<Record<JobDurability, string | undefined>> = {
  always: undefined,
  everysec: "jobs of the last second before Redis dies",
  none: "every job, when the process that keeps it ends",
  unknown: "jobs that Redis has not written to disk when it dies",
};

function time(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
