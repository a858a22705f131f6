import { InferenceError, StatusCode } from "./error.ts";
import type { InferenceResponse } from "./inference.ts";

/** A piece of a region that a client has registered, as a tensor's parameters name it. */
export interface MemorySlice {
  readonly region: string;
  /** From the beginning of the region. */
  readonly offset: number;
  readonly byteSize: number;
}

/** What one request takes out of shared memory and puts there; throws the reference's texts for what cannot be. */
export interface RequestMemory {
  /** A copy: what the client does to its memory afterwards changes nothing. */
  input(slice: MemorySlice): Uint8Array;
  /** From now on this output goes there. */
  output(name: string, slice: MemorySlice): void;
  /** True when some output goes there. */
  readonly hasOutputs: boolean;
  /** Writes the outputs that go there; the response that is left tells of them without their bytes. */
  place(response: InferenceResponse): InferenceResponse;
}

/** The bytes of an output that was put into shared memory: a reply tells of it without its data. */
export const placedBytes: Uint8Array = new Uint8Array(0);

/** The refusal of a region that nobody has registered. */
export function unknownRegion(name: string): InferenceError {
  return new InferenceError(StatusCode.NotFound, `Unable to find shared memory region: '${name}'`);
}
