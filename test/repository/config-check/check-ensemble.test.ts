import { describe, expect, it } from "vitest";
import { checkEnsemble } from "../../../repository/config-check/check-ensemble.ts";
import { configOf } from "../../fixtures/configs.ts";

const head = `platform: "ensemble" max_batch_size: 4
  input { name: "x" data_type: TYPE_FP32 dims: 4 }
  output { name: "y" data_type: TYPE_FP32 dims: 4 } `;

function check(text: string): void {
  checkEnsemble(configOf(text), "m");
}

/** A step of model "part" that reads one tensor of the ensemble and writes another. */
function step(from: string, to: string): string {
  return `step { model_name: "part" model_version: -1
    input_map { key: "in" value: "${from}" } output_map { key: "out" value: "${to}" } }`;
}

function ensemble(...steps: readonly string[]): string {
  return `${head} ensemble_scheduling { ${steps.join(" ")} }`;
}

// What the reference says to the same config, where no comment tells otherwise.
describe("checkEnsemble", () => {
  it.each([
    ["one step", ensemble(step("x", "y"))],
    ["steps in any order", ensemble(step("a", "y"), step("x", "a"))],
    ["a response cache", `${ensemble(step("x", "y"))} response_cache { enable: true }`],
  ])("passes %s", (_, text) => {
    expect(() => check(text)).not.toThrow();
  });

  it.each([
    [head, "ensemble scheduling must be set for ensemble m whose platform is ensemble"],
    [ensemble(), "must specify 'step' for ensemble 'm'"],
    [ensemble("step {}"), "must specify 'model_name' in step 0 of ensemble 'm'"],
    [
      ensemble(step("x", "y"), "step { model_name: 'p' }"),
      "must specify 'input_map' in step 1 of ensemble 'm'",
    ],
    [
      ensemble("step { model_name: 'p' input_map { key: 'in' value: 'x' } }"),
      "must specify 'output_map' in step 0 of ensemble 'm'",
    ],
    [
      `${ensemble(step("x", "y"))} instance_group {}`,
      "instance group should not be specified for ensemble 'm'",
    ],
    [
      `${ensemble(step("x", "y"))} optimization {}`,
      "optimization should not be specified for ensemble 'm'",
    ],
    [
      `${ensemble(step("x", "y"))} model_warmup {}`,
      "model_warmup can not be specified for ensemble 'm'",
    ],
    [
      `${ensemble(step("x", "y"))} backend: "python"`,
      "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ],
    [
      ensemble(step("x", "y")).replace("platform", "backend"),
      "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble",
    ],
  ])("refuses %j", (text, message) => {
    expect(() => check(text)).toThrow(expect.objectContaining({ code: "INVALID_ARG", message }));
  });

  it.each([
    [
      "an input without a reader",
      [step("z", "y")],
      "ensemble input 'x' for ensemble 'm' is not used",
    ],
    [
      "an output without a writer",
      [step("x", "z")],
      "ensemble output 'y' for ensemble 'm' is not used",
    ],
    [
      "a tensor with two writers",
      [step("x", "y"), step("x", "y")],
      "ensemble tensor 'y' can appear in an output map only once for ensemble 'm' step 1",
    ],
    // The reference lets a step overwrite an input of the ensemble.
    [
      "a step that writes an input",
      [step("x", "y"), step("y", "x")],
      "ensemble tensor 'x' can appear in an output map only once for ensemble 'm' step 1",
    ],
    [
      "a tensor without a writer",
      [step("x", "y"), step("z", "a")],
      "ensemble tensor 'z' is unused in ensemble 'm'",
    ],
    [
      "a tensor without a reader",
      [step("x", "y"), step("x", "a")],
      "ensemble tensor 'a' is unused in ensemble 'm'",
    ],
    [
      "an output that waits for a circle",
      [step("x", "c"), step("b", "y"), step("a", "b"), step("b", "a")],
      "output 'y' for ensemble 'm' is not written: at least one of its depending tensors, 'b', is not connected",
    ],
    // Our own text: the reference calls a tensor of the circle unused.
    [
      "a circle",
      [step("x", "y"), step("a", "b"), step("b", "a")],
      "in ensemble 'm', step of model 'part' waits for its own result",
    ],
  ])("refuses %s", (_, steps, message) => {
    expect(() => check(ensemble(...steps))).toThrow(message);
  });

  it("refuses more steps than anybody needs", () => {
    const steps = Array.from({ length: 1001 }, (_, i) => step("x", `t${i}`));
    expect(() => check(ensemble(...steps))).toThrow(
      "ensemble 'm' has 1001 steps, at most 1000 are allowed",
    );
  });
});
