import type { InferenceRequest } from "../protocol/inference.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";

/** Where a request stands in its sequence. */
export interface SequencePlace {
  /** Of the START that the sequence began with: no other START has the same. */
  readonly token: string;
  /** How many requests of the sequence were sent before it. */
  readonly number: number;
}

/** Between gateway and pool worker; no model sees it. */
const parameterName = "tidepool_sequence";

/** Lets a request say where it stands, so that a pool worker runs it there or not at all. */
export function withPlace<Request extends InferenceRequest>(
  request: Request,
  { token, number }: SequencePlace,
): Request {
  const parameters = new Map(request.parameters).set(parameterName, `${number} ${token}`);
  return { ...request, parameters };
}

/** The request as its client sent it, and what was said of its place. */
export function takePlace<Request extends InferenceRequest>(
  request: Request,
): { readonly request: Request; readonly place: SequencePlace | undefined } {
  const given = request.parameters.get(parameterName);
  if (given === undefined) return { request, place: undefined };
  const parameters = new Map(request.parameters);
  parameters.delete(parameterName);
  const [number, token = ""] = String(given).split(" ");
  return { request: { ...request, parameters }, place: { token, number: Number(number) } };
}

/** Of a request that a sequence scheduler would take; undefined for one that it refuses whatever its sequence is. */
export function sequenceIdOf({
  sequence,
  batchSize,
}: Pick<ValidInferenceRequest, "sequence" | "batchSize">): bigint | string | undefined {
  return batchSize > 1 || !sequence?.id ? undefined : sequence.id;
}

/** How long a sequence stays open without a request. */
export function idleMilliseconds({ sequenceBatching }: ModelConfig): number {
  return (sequenceBatching?.maxSequenceIdleMicroseconds ?? 0) / 1000;
}
