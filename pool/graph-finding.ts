import { z } from "zod";
import { datatypes } from "../protocol/datatype.ts";
import type { TensorMetadata } from "../protocol/metadata.ts";

/** What opening a model file once has shown: all that can be said about the model without opening it again. */
export interface GraphFinding {
  /** As the graph declares them, with the batch dimension; -1 is variable. */
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
  /** What opening it took. */
  readonly loadMilliseconds: number;
  /** Peak resident memory of the process that opened it. */
  readonly peakBytes: number;
}

const maxTensors = 10_000;
const maxRank = 1_000;

const tensors: z.ZodType<readonly TensorMetadata[]> = z
  .array(
    z.object({
      name: z.string(),
      datatype: z.enum(datatypes),
      shape: z.array(z.int().min(-1)).max(maxRank),
    }),
  )
  .max(maxTensors);

/** The same for what comes from a file, or from a process that has just opened what nobody trusts. */
export const graphFinding: z.ZodType<GraphFinding> = z.object({
  inputs: tensors,
  outputs: tensors,
  loadMilliseconds: z.number(),
  peakBytes: z.number(),
});
