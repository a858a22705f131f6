import { InferenceError, invalidArgument } from "./error.ts";

/** `[request id: 42] `: how the reference's errors about one request begin. */
export function requestLabel(id: string): string {
  return `[request id: ${id || "<id_unknown>"}] `;
}

/** INVALID_ARG with a text about the request of that id. */
export function invalidRequest(id: string, text: string): InferenceError {
  return invalidArgument(requestLabel(id) + text);
}

/** The same failure as one of the request of that id. */
export function aboutRequest(id: string, cause: InferenceError): InferenceError {
  return new InferenceError(cause.code, requestLabel(id) + cause.message, { cause });
}
