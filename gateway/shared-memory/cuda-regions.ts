import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import type { SharedMemoryRegions } from "./regions.ts";

/** The CUDA regions of a name, or all for "": none is ever registered. */
export function cudaStatus(name: string, regions: SharedMemoryRegions): readonly never[] {
  if (name === "") return [];
  const text = regions.has(name)
    ? `The region named '${name}' is registered as system shared memory, not CUDA shared memory`
    : `Unable to find cuda shared memory region: '${name}'`;
  throw new InferenceError(StatusCode.NotFound, text);
}

/** Refuses to register memory of a GPU: no GPU's memory is opened here. */
export function registerCuda(name: string): never {
  throw invalidArgument(
    `failed to register CUDA shared memory region: '${name}', GPUs not supported`,
  );
}
