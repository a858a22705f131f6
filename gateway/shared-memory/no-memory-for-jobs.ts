import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { RequestMemory } from "../../protocol/shared-memory.ts";

/** What a job gets instead of shared memory: it may run later and again, when the client's memory holds something else. */
export const noMemoryForJobs: RequestMemory = {
  hasOutputs: false,
  input: refuse,
  output: refuse,
  place: (response) => response,
};

function refuse(): never {
  throw new InferenceError(
    StatusCode.Unsupported,
    "shared memory: given for a job, expected tensors within the request",
  );
}
