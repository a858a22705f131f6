import { InferenceError, StatusCode } from "../protocol/error.ts";
import { maxWaiting } from "./scheduler.ts";

/**
 * Why a scheduler cannot take one more request, in the reference's words; undefined when it can.
 *
 * @param waiting how many it has that count against the bound
 */
export function refusal(
  modelName: string,
  stopping: boolean,
  waiting: number,
): InferenceError | undefined {
  if (stopping) return unavailable(`model '${modelName}' is being unloaded`);
  return waiting >= maxWaiting ? unavailable("Exceeds maximum queue size") : undefined;
}

/** A request whose time to wait is over. */
export function timeoutExpired(): InferenceError {
  return unavailable("Request timeout expired");
}

function unavailable(message: string): InferenceError {
  return new InferenceError(StatusCode.Unavailable, message);
}
