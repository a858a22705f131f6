import type { ModelConfig } from "../../../protocol/model-config.ts";

/** The backends that are modules of the runner, each for a framework that the Python of a model brings. */
export const frameworks = ["pytorch", "tensorflow", "openvino", "tensorrt"] as const;

export type Framework = (typeof frameworks)[number];

/** The framework that runs a model, if it is one of these. */
export function frameworkOf({ backend }: Pick<ModelConfig, "backend">): Framework | undefined {
  return frameworks.find((known) => known === backend);
}
