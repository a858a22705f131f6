import type { Datatype } from "./datatype.ts";
import type { InferenceRequest } from "./inference.ts";
import type { Shape } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

/** Longer heads are rare, and cheap beside what comes with them. */
const maxCharacters = 2048;
const maxHeads = 512;

/** An input without its bytes. */
interface RememberedInput {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: Shape;
  readonly size: number;
}

interface RememberedHead<Rest> {
  readonly request: InferenceRequest;
  readonly inputs: readonly RememberedInput[];
  readonly rest: Rest;
}

/**
 * What the JSON heads of earlier requests said. A client that sends tensors as binary data sends the same head with each,
 * and reading it again would cost more than all else that is done with a small request.
 */
export class RememberedHeads<Rest> {
  readonly #heads = new Map<string, RememberedHead<Rest>>();

  /** Remembers a request whose tensors all came from the tail; others, and those with an id, will not come again. */
  keep(text: string, request: InferenceRequest, rest: Rest): void {
    if (text.length > maxCharacters || request.id !== "") return;
    for (const oldest of this.#heads.keys()) {
      if (this.#heads.size < maxHeads) break;
      this.#heads.delete(oldest);
    }
    const inputs = request.inputs.map(({ name, datatype, shape, bytes }) => ({
      name,
      datatype,
      shape,
      size: bytes.length,
    }));
    this.#heads.set(text, { request: { ...request, inputs: [] }, inputs, rest });
  }

  /** The request that this head makes with this tail; undefined where it is new, or the tail is not of its size. */
  recall(text: string, tail: Uint8Array): readonly [InferenceRequest, Rest] | undefined {
    const head = this.#heads.get(text);
    if (!head) return undefined;
    const inputs: Tensor[] = [];
    let offset = 0;
    for (const { name, datatype, shape, size } of head.inputs) {
      const bytes = tail.subarray(offset, offset + size);
      inputs.push({ name, datatype, shape, bytes });
      offset += size;
    }
    return offset === tail.length ? [{ ...head.request, inputs }, head.rest] : undefined;
  }
}
