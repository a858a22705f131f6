import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import { isDecoupled } from "./is-decoupled.ts";

/**
 * Checks that whatever is put together comes from the same responses: of a model that answers often nobody could say
 * which answer belongs to a tensor that has not come through it.
 *
 * @param members the config of each step's model
 * @throws INVALID_ARG with the reference's text
 */
export function checkDecoupled(config: ModelConfig, members: readonly ModelConfig[]): void {
  if (!members.some(isDecoupled)) return;
  const { name, input, output } = config;
  const steps = config.ensembleScheduling?.step ?? [];
  const origins: Origins = new Map(input.map((tensor) => [tensor.name, ""]));
  const left = new Set(steps.entries());
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const step of left) if (followOrigins(name, step, members, origins)) left.delete(step);
  }
  const outputs = output.map((tensor) => tensor.name);
  commonOrigin(name, outputs, origins);
}

/** For each tensor, the steps through whose responses it has come. */
type Origins = Map<string, string>;
type Step = NonNullable<ModelConfig["ensembleScheduling"]>["step"][number];

/** False while it is not known where its inputs come from. */
function followOrigins(
  ensemble: string,
  [index, { inputMap, outputMap }]: readonly [number, Step],
  members: readonly ModelConfig[],
  origins: Origins,
): boolean {
  const read = Object.values(inputMap);
  if (!read.every((tensor) => origins.has(tensor))) return false;
  const member = members[index];
  const own = member && isDecoupled(member) ? `${index} ` : "";
  const origin = commonOrigin(ensemble, read, origins) + own;
  for (const tensor of Object.values(outputMap)) origins.set(tensor, origin);
  return true;
}

function commonOrigin(ensemble: string, tensors: readonly string[], origins: Origins): string {
  const found = new Set(tensors.map((tensor) => origins.get(tensor)));
  if (found.size > 1) throw differentOrigins(ensemble);
  const [origin = ""] = found;
  return origin;
}

/** The reference names the ensemble twice. */
function differentOrigins(ensemble: string): InferenceError {
  return invalidArgument(
    `in ensemble ${ensemble}, step of model '${ensemble}' receives inputs originated from different decoupled models`,
  );
}
