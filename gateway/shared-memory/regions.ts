import { closeSync } from "node:fs";
import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import { openKey } from "./open-key.ts";
import { Region, type RegionDescription } from "./region.ts";
import { RegionUse } from "./region-use.ts";

/** Each holds a file descriptor. */
const mostRegions = 1024;

const longestName = 1024;

/**
 * The regions of shared memory that clients have registered, over whichever transport: they write inputs there and read
 * outputs from there, so that tensors do not pass through a socket.
 */
export class SharedMemoryRegions {
  readonly #allowed: boolean;
  readonly #regions = new Map<string, Region>();

  /** @param allowed `--allow-client-shm`: without it nothing is ever registered */
  constructor(allowed: boolean) {
    this.#allowed = allowed;
  }

  /** Opens what a client wants to share; throws the reference's texts. */
  register(description: RegionDescription): void {
    const { name, key, offset, byteSize } = description;
    this.#mayRegister(name);
    const memory = openKey(key, name);
    if (byteSize < 1 || offset + byteSize > memory.size) {
      closeSync(memory.fd);
      throw invalidArgument(`failed to register shared memory region '${name}': invalid args`);
    }
    const region = new Region(description, memory, () => this.#regions.delete(name));
    this.#regions.set(name, region);
  }

  /** All regions for a name of "", or that one. */
  status(name: string): readonly RegionDescription[] {
    if (name === "") return Array.from(this.#regions.values(), ({ description }) => description);
    const region = this.#regions.get(name);
    if (region) return [region.description];
    throw new InferenceError(
      StatusCode.NotFound,
      `Unable to find system shared memory region: '${name}'`,
    );
  }

  /** True for a name that is taken. */
  has(name: string): boolean {
    return this.#regions.has(name);
  }

  /** Closes a region, or all for a name of "", as soon as no request uses it; one that is not there is no error. */
  unregister(name: string): void {
    const regions = name === "" ? [...this.#regions.values()] : [this.#regions.get(name)];
    for (const region of regions) region?.unregister();
  }

  /** For one request, which has to close it; undefined while there is no region that it could use. */
  open(): RegionUse | undefined {
    return this.#regions.size === 0 ? undefined : new RegionUse(this.#regions);
  }

  #mayRegister(name: string): void {
    if (!this.#allowed) {
      throw new InferenceError(
        StatusCode.Unsupported,
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
      );
    }
    if (this.#regions.has(name)) {
      throw new InferenceError(
        StatusCode.AlreadyExists,
        `shared memory region '${name}' already in manager`,
      );
    }
    if (name.length > longestName) {
      throw invalidArgument(
        `failed to register shared memory region: given a name of ${name.length} characters, expected at most ${longestName}`,
      );
    }
    if (this.#regions.size >= mostRegions) {
      throw invalidArgument(
        `failed to register shared memory region '${name}': given one more than ${mostRegions}, expected at most so many`,
      );
    }
  }
}
