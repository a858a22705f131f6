import type { ComputeMoments } from "../protocol/request-trace.ts";
import type { ExecutionTimings } from "./model-statistics.ts";
import type { PendingRequest } from "./scheduler.ts";

/**
 * Tells those of the requests that are traced what their execution took. To be called when their responses are made, and
 * before they are sent: a trace may be over with the response.
 *
 * @param outputStartAt when the model had run; `performance.now()`, in milliseconds
 */
export function traceExecution(
  requests: readonly PendingRequest[],
  timings: Omit<ExecutionTimings, "computeOutputNanoseconds">,
  outputStartAt: number,
): void {
  let moments: ComputeMoments | undefined;
  for (const { call } of requests) {
    if (call.trace) call.trace.computed((moments ??= computeMoments(timings, outputStartAt)));
  }
}

function computeMoments(
  {
    computeInputNanoseconds,
    computeInferNanoseconds,
  }: Omit<ExecutionTimings, "computeOutputNanoseconds">,
  outputStartAt: number,
): ComputeMoments {
  const inputEndAt = outputStartAt - computeInferNanoseconds / 1e6;
  const startAt = inputEndAt - computeInputNanoseconds / 1e6;
  return { startAt, inputEndAt, outputStartAt, endAt: performance.now() };
}
