import type { Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { hasEnded, type Job, type JobAnswer, type Jobs } from "../protocol/job.ts";

/** Which job somebody asks for. */
export interface JobQuestion {
  readonly principal: Principal;
  readonly id: string;
}

/** Gives the job as it is, then again whenever that is another, until it has ended or the signal says that nobody listens. */
export async function* watchJob(
  jobs: Jobs,
  { principal, id }: JobQuestion,
  signal: AbortSignal,
): AsyncGenerator<Job> {
  let last = "";
  for (;;) {
    // Asked for before the job is read, so that no change falls between the two.
    const changed = jobs.changed(id, signal);
    const job = await jobs.find(principal, id);
    if (!job || signal.aborted) return;
    const now = JSON.stringify(job);
    if (now !== last) yield job;
    last = now;
    if (hasEnded(job)) return;
    await changed;
  }
}

/** The job once it has ended; as it was last seen when the signal came first. */
export async function endedJob(
  jobs: Jobs,
  question: JobQuestion,
  signal: AbortSignal,
): Promise<Job | undefined> {
  let last: Job | undefined;
  for await (const job of watchJob(jobs, question, signal)) last = job;
  return last;
}

/** What an ended job answers: its response, or it throws what has become of it. */
export async function answerOf(jobs: Jobs, principal: Principal, job: Job): Promise<JobAnswer> {
  if (job.state === "cancelled") {
    throw new InferenceError(StatusCode.Cancelled, `job '${job.id}' was cancelled`);
  }
  if (job.error && job.state === "failed") {
    throw new InferenceError(job.error.code, job.error.message);
  }
  const answer = await jobs.answer(principal, job.id);
  if (answer) return answer;
  throw new InferenceError(StatusCode.NotFound, `the result of job '${job.id}' is kept no longer`);
}
