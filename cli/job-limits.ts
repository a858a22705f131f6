import type { JobLimits } from "../queue/job-gateway.ts";
import type { Settings } from "./settings.ts";

/** How long jobs are kept, and how many, by the flags. */
export function jobLimits(settings: Settings): JobLimits {
  return {
    resultMilliseconds: settings.jobResultTtlSecs * 1000,
    failedMilliseconds: settings.jobFailedTtlSecs * 1000,
    keyMilliseconds: settings.idempotencyTtlSecs * 1000,
    attempts: settings.jobAttempts,
    maxUnfinished: settings.jobMaxUnfinished,
    maxResultBytes: settings.jobMaxResultBytes,
  };
}
