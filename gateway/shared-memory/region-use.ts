import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import {
  type MemorySlice,
  placedBytes,
  type RequestMemory,
  unknownRegion,
} from "../../protocol/shared-memory.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Region } from "./region.ts";

/** Bytes that the inputs of one request may have there, as many as the largest gRPC message. */
const mostInputBytes = 2 ** 31 - 1;

interface Place {
  readonly region: Region;
  readonly slice: MemorySlice;
}

/** The regions that one request uses: they stay open until its answer is there, whoever unregisters them meanwhile. */
export class RegionUse implements RequestMemory {
  readonly #regions: ReadonlyMap<string, Region>;
  readonly #held: Region[] = [];
  readonly #places = new Map<string, Place>();
  #inputBytes = 0;

  constructor(regions: ReadonlyMap<string, Region>) {
    this.#regions = regions;
  }

  get hasOutputs(): boolean {
    return this.#places.size > 0;
  }

  input(slice: MemorySlice): Uint8Array {
    const region = this.#hold(slice);
    this.#inputBytes += slice.byteSize;
    if (this.#inputBytes <= mostInputBytes) return region.read(slice);
    throw invalidArgument(
      `inputs in shared memory: given ${this.#inputBytes} bytes, expected at most ${mostInputBytes}`,
    );
  }

  output(name: string, slice: MemorySlice): void {
    const region = this.#hold(slice);
    this.#places.set(name, { region, slice });
  }

  place(response: InferenceResponse): InferenceResponse {
    if (!this.hasOutputs) return response;
    return { ...response, outputs: response.outputs.map((output) => this.#placed(output)) };
  }

  /** The request has been answered. */
  close(): void {
    for (const region of this.#held.splice(0)) region.release();
  }

  #hold(slice: MemorySlice): Region {
    const region = this.#regions.get(slice.region);
    if (!region) throw unknownRegion(slice.region);
    region.check(slice);
    region.hold();
    this.#held.push(region);
    return region;
  }

  #placed(output: Tensor): Tensor {
    const { name, bytes } = output;
    const place = this.#places.get(name);
    if (!place) return output;
    const { region, slice } = place;
    if (bytes.length > slice.byteSize) {
      throw new InferenceError(
        StatusCode.Internal,
        `shared memory size specified with the request for output '${name}' (${slice.byteSize} bytes) ` +
          `should be at least ${bytes.length} bytes to hold the results`,
      );
    }
    region.write(slice, bytes);
    return { ...output, bytes: placedBytes };
  }
}
