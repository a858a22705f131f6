import { invalidArgument } from "./error.ts";

/** A request body in two parts; both are views on it. */
export interface SplitBody {
  /** The JSON, or nothing at all: then the whole body is the model's only input. */
  readonly head: Uint8Array;
  /** The binary tensor data, in the order of the inputs. */
  readonly tail: Uint8Array;
}

/** Cuts a body where `Inference-Header-Content-Length` says that its JSON ends; without that header all of it is JSON. */
export function splitBody(body: Uint8Array, headerContentLength: string | undefined): SplitBody {
  const length = headLength(body.length, headerContentLength);
  return { head: body.subarray(0, length), tail: body.subarray(length) };
}

function headLength(bodyLength: number, header: string | undefined): number {
  if (header === undefined) return bodyLength;
  const length = /^\s*[+-]?\d+\s*$/.test(header) ? Number(header) : NaN;
  if (length >= 0 && length <= bodyLength) return length;
  const given = Number.isNaN(length) ? `'${header}'` : length;
  throw invalidArgument(
    `inference header size should be in range (0, ${bodyLength}), got: ${given}`,
  );
}

/** Hands out the binary tail piece by piece, as views. */
export class BinaryTail {
  readonly #bytes: Uint8Array;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The next so many bytes, or undefined where fewer are left. */
  take(size: number): Uint8Array | undefined {
    const end = this.#offset + size;
    if (end > this.#bytes.length) return undefined;
    const piece = this.#bytes.subarray(this.#offset, end);
    this.#offset = end;
    return piece;
  }

  get left(): number {
    return this.#bytes.length - this.#offset;
  }
}
