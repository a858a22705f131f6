import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelInstance } from "../instance/model-instance.ts";
import type { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type { Clock } from "../../serving/clock.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

/** Runs requests together on an instance until each of them is answered, well or ill. Never rejects. */
export type RunRequests = (
  instance: ModelInstance,
  requests: readonly PendingRequest[],
) => Promise<void>;

/** Failures that no request is to blame for: another run would only meet them again. */
const nobodysFault: ReadonlySet<StatusCode> = new Set([
  StatusCode.Unavailable,
  StatusCode.Cancelled,
]);

/**
 * Runs requests and counts what became of each. One bad request must not fail those it happened to meet in a batch:
 * when they fail together, each gets a run of its own, and only those runs count.
 */
export function requestRunner(statistics: ModelStatisticsRecorder, clock: Clock): RunRequests {
  const run: RunRequests = async (instance, requests) => {
    const startedAt = clock.now();
    try {
      const timings = await instance.execute(requests);
      statistics.executed(requests, timings, clock.now());
    } catch (cause) {
      const error = InferenceError.from(cause);
      if (requests.length > 1 && !instance.runsOnce && !nobodysFault.has(error.code)) {
        await Promise.all(requests.map((one) => run(instance, [one])));
        return;
      }
      statistics.executionFailed(requests, startedAt, clock.now());
      for (const { sink } of requests) sink.fail(error);
    }
  };
  return run;
}
