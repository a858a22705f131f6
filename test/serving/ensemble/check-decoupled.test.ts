import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { checkDecoupled } from "../../../serving/ensemble/check-decoupled.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { step } from "./held-member.ts";

const once = servedModel("once", {}).config;
const many = servedModel("many", { modelTransactionPolicy: { decoupled: true } }).config;

function check(
  outputs: readonly string[],
  ...steps: readonly (readonly [ModelConfig, inputs: string, output: string])[]
): () => void {
  const config = servedModel("e", {
    input: [modelInput("IN", "TYPE_FP32", [1])],
    output: outputs.map((name) => modelOutput(name, "TYPE_FP32", [1])),
    ensembleScheduling: {
      maxInflightRequests: 0,
      step: steps.map(([{ name }, inputs, output]) =>
        step(name, Object.fromEntries(inputs.split(" ").map((tensor) => [tensor, tensor])), {
          Y: output,
        }),
      ),
    },
  }).config;
  return () =>
    checkDecoupled(
      config,
      steps.map(([member]) => member),
    );
}

const refusal =
  "in ensemble e, step of model 'e' receives inputs originated from different decoupled models";

describe("checkDecoupled", () => {
  it("admits chains of models that answer many times, in any order of the steps", () => {
    const mixed = check(["OUT", "m"], [once, "m", "OUT"], [many, "a", "m"], [once, "IN", "a"]);
    expect(mixed).not.toThrow();
    expect(check(["OUT"], [many, "IN", "m"], [many, "m", "n"], [once, "n", "OUT"])).not.toThrow();
  });

  it("admits anything of models that answer once", () => {
    expect(check(["OUT", "a"], [once, "IN", "a"], [once, "IN a", "OUT"])).not.toThrow();
  });

  it("refuses to put together what comes of different responses", () => {
    expect(check(["OUT"], [many, "IN", "m"], [once, "m IN", "OUT"])).toThrow(refusal);
    expect(check(["OUT", "a"], [many, "IN", "OUT"], [once, "IN", "a"])).toThrow(refusal);
    expect(check(["OUT", "a"], [many, "IN", "OUT"], [many, "IN", "a"])).toThrow(refusal);
  });
});
