import type { ServedModel } from "./engine.ts";
import type { InferenceRequest } from "./inference.ts";

declare const valid: unique symbol;

/** A request that fits the config of the version it names: schedulers and backends take nothing else. */
export interface ValidInferenceRequest extends InferenceRequest {
  readonly [valid]: true;
  /** The version it was checked against. */
  readonly model: ServedModel;
  /** Items in it: the first dimension of every input, or 1 for a model without batching. */
  readonly batchSize: number;
}

/** Checks a request against the config of the version that would run it; throws INVALID_ARG with the reference's texts. */
export function validRequest(_model: ServedModel, _request: InferenceRequest): ValidInferenceRequest {
  throw new Error("being written");
}
