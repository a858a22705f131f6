import { closeSync, ftruncateSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";

const folder = "/dev/shm";
const smallestBlockBytes = 65_536;

/**
 * Memory that a Python process and this one share, for tensors that are too large to go through a socket: a file without
 * a name, so that nothing is left of it when both are gone.
 */
export class Arena {
  readonly fileDescriptor: number;
  readonly sizeBytes: number;
  #end = 0;
  #closed = false;
  /** Offsets of free blocks by their size. */
  readonly #free = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();

  private constructor(fileDescriptor: number, sizeBytes: number) {
    this.fileDescriptor = fileDescriptor;
    this.sizeBytes = sizeBytes;
  }

  /** Undefined where the machine has no such memory. It takes memory only as it is used. */
  static open(sizeBytes: number): Arena | undefined {
    const path = `${folder}/tidepool-${randomBytes(12).toString("hex")}`;
    try {
      const fileDescriptor = openSync(path, "wx+", 0o600);
      unlinkSync(path);
      ftruncateSync(fileDescriptor, sizeBytes);
      return new Arena(fileDescriptor, sizeBytes);
    } catch {
      return undefined;
    }
  }

  /** Where the bytes lie from now on, or undefined when there is no room. */
  store(bytes: Uint8Array): number | undefined {
    if (this.#closed) return undefined;
    const offset = this.#block(bytes.byteLength);
    if (offset === undefined) return undefined;
    try {
      let written = 0;
      while (written < bytes.byteLength) {
        const left = bytes.byteLength - written;
        written += writeSync(this.fileDescriptor, bytes, written, left, offset + written);
      }
      return offset;
    } catch {
      this.free(offset);
      return undefined;
    }
  }

  /** Nobody reads the bytes stored there any more. */
  free(offset: number): void {
    const size = this.#sizes.get(offset);
    if (size === undefined) return;
    const free = this.#free.get(size);
    if (free) free.push(offset);
    else this.#free.set(size, [offset]);
  }

  /** A copy of what the other side has put there. */
  read(offset: number, length: number): Uint8Array {
    if (this.#closed || offset + length > this.sizeBytes) throw new RangeError("no such block");
    const bytes = Buffer.allocUnsafeSlow(length);
    let done = 0;
    while (done < length) {
      const count = readSync(this.fileDescriptor, bytes, done, length - done, offset + done);
      if (count === 0) throw new RangeError("shared memory ends early");
      done += count;
    }
    return bytes;
  }

  /** Twice is as good as once. */
  close(): void {
    if (this.#closed) return;
    // From now on its number may be another file's.
    this.#closed = true;
    closeSync(this.fileDescriptor);
  }

  #block(length: number): number | undefined {
    const size = Math.max(smallestBlockBytes, 2 ** Math.ceil(Math.log2(length)));
    const free = this.#free.get(size)?.pop();
    if (free !== undefined) return free;
    if (this.#end + size > this.sizeBytes) return undefined;
    const offset = this.#end;
    this.#end += size;
    this.#sizes.set(offset, size);
    return offset;
  }
}
