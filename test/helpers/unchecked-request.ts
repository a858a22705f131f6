import type { ServedModel } from "../../protocol/served-model.ts";
import type { RequestedOutput } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";

/** A request as it leaves validation, without having gone through it, for what is behind. */
export function uncheckedRequest(
  model: ServedModel,
  inputs: readonly Tensor[],
  more: { readonly id?: string; readonly outputs?: readonly RequestedOutput[] } = {},
): ValidInferenceRequest {
  const request = {
    modelName: model.name,
    modelVersion: "",
    id: "",
    inputs,
    outputs: [],
    parameters: noParameters,
    priority: 0,
    timeoutMicroseconds: 0,
    model,
    batchSize: model.config.maxBatchSize > 0 ? (inputs[0]?.shape[0] ?? 1) : 1,
    ...more,
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only validation can make the real thing
  return request as unknown as ValidInferenceRequest;
}
