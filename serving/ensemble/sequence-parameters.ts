import type { InferenceRequest } from "../../protocol/inference.ts";
import type { Parameters, ParameterValue } from "../../protocol/parameters.ts";

/** What the reference tells of the sequence in every answer of an ensemble, also where there is none. */
export function sequenceParameters({ sequence }: InferenceRequest): Parameters {
  return sequence
    ? new Map<string, ParameterValue>([
        ["sequence_id", sequence.id],
        ["sequence_start", sequence.start],
        ["sequence_end", sequence.end],
      ])
    : noSequence;
}

const noSequence: Parameters = new Map<string, ParameterValue>([
  ["sequence_id", 0n],
  ["sequence_start", false],
  ["sequence_end", false],
]);
