import type { CachedResponse } from "../../cache/cached-response.ts";
import type { Parameters } from "../../protocol/parameters.ts";

/** An answer with one tensor of so many bytes. */
export function responseOf(
  modelName: string,
  bytes: number,
  parameters: Parameters = new Map(),
): CachedResponse {
  return {
    modelName,
    modelVersion: "1",
    parameters,
    outputs: [{ name: "OUT", datatype: "UINT8", shape: [bytes], bytes: Buffer.alloc(bytes, 7) }],
  };
}
