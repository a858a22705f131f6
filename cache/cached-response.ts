import type { InferenceResponse } from "../protocol/inference.ts";

/** An answer as it is kept: whoever gets it has an id of their own. */
export type CachedResponse = Omit<InferenceResponse, "id">;

/**
 * The same answer with its tensors in memory of their own: those of a response are views on what a whole batch gave, all of
 * which a kept answer would hold.
 */
export function ownCopy(response: CachedResponse): CachedResponse {
  const { modelName, modelVersion, parameters } = response;
  const buffer = Buffer.allocUnsafeSlow(tensorBytes(response));
  let at = 0;
  const outputs = response.outputs.map(({ name, datatype, shape, bytes }) => {
    buffer.set(bytes, at);
    const start = at;
    at += bytes.byteLength;
    return { name, datatype, shape, bytes: buffer.subarray(start, at) };
  });
  return { modelName, modelVersion, parameters, outputs };
}

/** What the tensors of an answer take. */
export function tensorBytes({ outputs }: CachedResponse): number {
  return outputs.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}
