import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";

/** A shared memory object of a client, as shm_open() makes one; to be removed in the end. */
export class MemoryObject {
  readonly key = `/tidepool-test-${randomUUID()}`;
  readonly path = `/dev/shm${this.key}`;
  readonly #fd: number;

  constructor(size: number) {
    this.#fd = openSync(this.path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600);
    this.resize(size);
  }

  resize(size: number): void {
    ftruncateSync(this.#fd, size);
  }

  write(bytes: Uint8Array, offset = 0): void {
    writeSync(this.#fd, bytes, 0, bytes.length, offset);
  }

  read(size: number, offset = 0): Buffer {
    const bytes = Buffer.alloc(size);
    const count = readSync(this.#fd, bytes, 0, size, offset);
    return bytes.subarray(0, count);
  }

  /** The regions that are open of it stay. */
  remove(): void {
    rmSync(this.path, { force: true });
    closeSync(this.#fd);
  }
}

/** Little-endian FP32 values. */
export function floatBytes(...values: readonly number[]): Buffer {
  return Buffer.from(new Float32Array(values).buffer);
}
