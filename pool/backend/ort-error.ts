import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** Matches absolute paths, the model's own on this machine and those of the runtime's sources alike. */
const paths = /(?:from )?(?:\/[\w.+@-]+){2,}(?::\d+)?/g;
const badInput = /INVALID_ARGUMENT|Invalid (?:rank|input)|Got invalid dimensions/;
const maxText = 500;

/** What ONNX Runtime threw, for clients: without paths, and INVALID_ARG where it blames the input. */
export function ortError(subject: string, cause: unknown): InferenceError {
  if (cause instanceof InferenceError) return cause;
  const given = cause instanceof Error ? cause.message : String(cause);
  const text = given.replace(paths, "").replaceAll(/\s+/g, " ").trim().slice(0, maxText);
  const code = badInput.test(given) ? StatusCode.InvalidArg : StatusCode.Internal;
  return new InferenceError(code, `${subject}: onnx runtime error: ${text}`, { cause });
}
