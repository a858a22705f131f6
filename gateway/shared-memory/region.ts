import { closeSync, fstatSync, readSync, writeSync } from "node:fs";
import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import type { MemorySlice } from "../../protocol/shared-memory.ts";
import type { OpenMemory } from "./open-key.ts";

/** What a client says about memory that it registers. */
export interface RegionDescription {
  readonly name: string;
  /** The name of the shared memory object, as shm_open() takes it. */
  readonly key: string;
  /** Where in the object the region begins. */
  readonly offset: number;
  readonly byteSize: number;
}

/**
 * A registered region, which stays open until it is unregistered and the last request that uses it has its answer.
 * Its memory is the client's, which may make it smaller at any time: it is read and written as a file and never mapped,
 * so that this ends in an error and not in a signal that ends the server.
 */
export class Region {
  readonly description: RegionDescription;
  readonly #fd: number;
  readonly #onClose: () => void;
  #users = 0;
  #unregistered = false;

  /** Takes over the open memory. @param onClose told when nobody can use the region any more */
  constructor(description: RegionDescription, { fd }: OpenMemory, onClose: () => void) {
    this.description = description;
    this.#fd = fd;
    this.#onClose = onClose;
  }

  /** Throws for a slice that does not lie within the region. */
  check({ offset, byteSize }: MemorySlice): void {
    const { name, byteSize: size } = this.description;
    if (offset >= size) {
      throw invalidArgument(`Invalid offset for shared memory region: '${name}'`);
    }
    if (byteSize < 1 || offset + byteSize > size) throw this.#beyond();
  }

  /** A copy of a slice that has been checked. */
  read(slice: MemorySlice): Uint8Array {
    const bytes = Buffer.allocUnsafe(slice.byteSize);
    const start = this.description.offset + slice.offset;
    for (let done = 0; done < bytes.length;) {
      const count = readSync(this.#fd, bytes, done, bytes.length - done, start + done);
      if (count === 0) throw this.#beyond();
      done += count;
    }
    return bytes;
  }

  /** Writes at the beginning of a slice that has been checked and has room for the bytes. */
  write(slice: MemorySlice, bytes: Uint8Array): void {
    const start = this.description.offset + slice.offset;
    // Writing behind the end would make the client's memory larger.
    if (start + bytes.length > fstatSync(this.#fd).size) throw this.#beyond();
    try {
      for (let done = 0; done < bytes.length;) {
        done += writeSync(this.#fd, bytes, done, bytes.length - done, start + done);
      }
    } catch (cause) {
      const text = `unable to write to shared memory region: '${this.description.name}'`;
      throw new InferenceError(StatusCode.Internal, text, { cause });
    }
  }

  /** A request begins to use it. */
  hold(): void {
    this.#users += 1;
  }

  /** The request has its answer. */
  release(): void {
    this.#users -= 1;
    this.#closeIfUnused();
  }

  /** Closes it as soon as no request uses it. */
  unregister(): void {
    this.#unregistered = true;
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    if (!this.#unregistered || this.#users > 0) return;
    closeSync(this.#fd);
    this.#onClose();
  }

  #beyond(): InferenceError {
    return invalidArgument(
      `Invalid offset + byte size for shared memory region: '${this.description.name}'`,
    );
  }
}
