import type { ModelConfig } from "../../protocol/model-config.ts";
import { sameItemShape } from "../../protocol/shape.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

/**
 * Compiles, for one model, the question whether two requests fit into one batch: they bring the same inputs, and
 * the inputs of variable size agree in every dimension but the first, unless they may be ragged.
 */
export function mayShareBatch(
  config: ModelConfig,
): (first: PendingRequest, other: PendingRequest) => boolean {
  const variable = new Set(
    config.input
      .filter((input) => input.dims.includes(-1) && !input.allowRaggedBatch)
      .map((input) => input.name),
  );
  const optional = config.input.some((input) => input.optional);
  if (variable.size === 0 && !optional) return () => true;
  return ({ request: first }, { request: other }) =>
    first.inputs.length === other.inputs.length &&
    other.inputs.every((input) => {
      const counterpart = first.inputs.find((candidate) => candidate.name === input.name);
      return (
        counterpart && (!variable.has(input.name) || sameItemShape(counterpart.shape, input.shape))
      );
    });
}
