import { InferenceError, invalidArgument, StatusCode } from "../protocol/error.ts";
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
  return waiting >= maxWaiting ? queueFull() : undefined;
}

/** A request for which the queue has no place. */
export function queueFull(): InferenceError {
  return unavailable("Exceeds maximum queue size");
}

const expired = "Request timeout expired";

/** A request whose time to wait is over. */
export function timeoutExpired(): InferenceError {
  return unavailable(expired);
}

/** True for the failure of a request whose time to wait was over, wherever it waited. */
export function isTimeoutExpired({ code, message }: InferenceError): boolean {
  return code === StatusCode.Unavailable && message.endsWith(expired);
}

/** A request of a sequence that is not open. @param sequenceId its correlation id */
export function startMissing(modelName: string, sequenceId: bigint | string): InferenceError {
  return invalidArgument(
    `inference request for sequence ${sequenceId} to model '${modelName}' must specify the START flag on ` +
      "the first request of the sequence",
  );
}

function unavailable(message: string): InferenceError {
  return new InferenceError(StatusCode.Unavailable, message);
}
