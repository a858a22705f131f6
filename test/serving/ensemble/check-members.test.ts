import { describe, expect, it } from "vitest";
import { checkMembers } from "../../../serving/ensemble/check-members.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { step } from "./held-member.ts";

interface Sides {
  readonly dataType?: string;
  readonly dims?: readonly number[];
  readonly maxBatchSize?: number;
}

type TensorMap = Readonly<Record<string, string>>;

/** Checks an ensemble of one step, FP32 [2] and batches of 4 wherever nothing else is said. */
function check(
  ensemble: Sides,
  member: Sides,
  maps: TensorMap = { A: "IN" },
  made: TensorMap = { Y: "OUT" },
): void {
  const config = {
    ...side("IN", "OUT", ensemble),
    ensembleScheduling: { step: [step("part", maps, made)], maxInflightRequests: 0 },
  };
  const part = side("A", "Y", member);
  const optional = modelInput("B", "TYPE_FP32", [2], { optional: true });
  checkMembers(servedModel("e", config).config, [
    servedModel("part", { ...part, input: [...part.input, optional] }).config,
  ]);
}

function side(
  input: string,
  output: string,
  { dataType = "TYPE_FP32", dims = [2], maxBatchSize = 4 }: Sides,
) {
  return {
    maxBatchSize,
    input: [modelInput(input, dataType, dims)],
    output: [modelOutput(output, dataType, dims)],
  };
}

describe("checkMembers", () => {
  it.each([
    ["equal tensors", {}, {}],
    ["a variable dimension in the ensemble", { dims: [-1] }, {}],
    ["a variable dimension in the model", {}, { dims: [-1] }],
    ["smaller batches than the model's", { maxBatchSize: 2 }, {}],
    ["a model without batching, of the same dims", {}, { maxBatchSize: 0 }],
    ["a model without batching, whose dims have the batch", {}, { maxBatchSize: 0, dims: [-1, 2] }],
    [
      "an ensemble without batching, whose dims have the batch",
      { maxBatchSize: 0, dims: [3, 2] },
      {},
    ],
  ])("allows %s", (_, ensemble, member) => {
    expect(() => check(ensemble, member)).not.toThrow();
  });

  it.each([
    [
      { dataType: "TYPE_INT32" },
      "in ensemble e, ensemble tensor IN: inconsistent data type: TYPE_FP32 is inferred from model e while TYPE_INT32 is inferred from model part",
    ],
    [
      { dims: [3] },
      "in ensemble e, ensemble tensor IN: inconsistent shape: [-1,2] is inferred from model e while [-1,3] is inferred from model part",
    ],
    [
      { dims: [2, 2] },
      "in ensemble e, ensemble tensor IN: inconsistent shape: [-1,2] is inferred from model e while [-1,2,2] is inferred from model part",
    ],
    [
      { maxBatchSize: 3 },
      "ensemble e allows maximum batch size 4, but it contains model part which only allows maximum batch size to be 3",
    ],
  ])("refuses a model with %j", (member, message) => {
    expect(() => check({}, member)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", message }),
    );
  });

  it("refuses tensors that the model does not have, and inputs that get none", () => {
    expect(() => check({}, {}, { A: "IN", C: "IN" })).toThrow(
      "in ensemble e, ensemble tensor IN is mapping to non-existing input C in model part",
    );
    expect(() => check({}, {}, { A: "IN" }, { Y: "OUT", C: "c" })).toThrow(
      "in ensemble e, ensemble tensor c is mapped from non-existing output C in model part",
    );
    expect(() => check({}, {}, { B: "IN" })).toThrow(
      "in ensemble e, input A in model part is not mapped to any ensemble tensors",
    );
  });
});
