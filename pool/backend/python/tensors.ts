import { byteSize, isDatatype } from "../../../protocol/datatype.ts";
import { elementCount } from "../../../protocol/shape.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { padded } from "./frame.ts";
import type { HeadReader } from "./head-reader.ts";
import type { SharedMemory } from "./shared-memory.ts";

/** From here on shared memory is faster than the socket. */
const sharedBytes = 32_768;

/** Tensors on their way to a process: JSON for the head, and what goes behind it. */
export interface EncodedTensors {
  readonly head: string;
  readonly payloads: readonly Uint8Array[];
}

/** Puts large tensors into shared memory, where there is room, and leaves the others to the socket. */
export function encodeTensors(
  tensors: readonly Tensor[],
  memory: SharedMemory | undefined,
): EncodedTensors {
  const payloads: Uint8Array[] = [];
  const heads = tensors.map(({ name, datatype, shape, bytes }) => {
    const large = bytes.byteLength >= sharedBytes;
    const offset = large ? memory?.toProcess.store(bytes) : undefined;
    if (offset === undefined) payloads.push(bytes);
    const place = offset === undefined ? "" : `,${offset}`;
    return `[${JSON.stringify(name)},"${datatype}",[${shape.join(",")}],${bytes.byteLength}${place}]`;
  });
  return { head: `[${heads.join(",")}]`, payloads };
}

/** Reads the tensors of one frame, which lie one behind the other in its payload or in shared memory. */
export class TensorReader {
  readonly #payload: Uint8Array;
  readonly #memory: SharedMemory | undefined;
  readonly #read: (offset: number) => void;
  #at = 0;

  /** @param read told of blocks of shared memory that are read and may be used again */
  constructor(
    payload: Uint8Array,
    memory: SharedMemory | undefined,
    read: (offset: number) => void,
  ) {
    this.#payload = payload;
    this.#memory = memory;
    this.#read = read;
  }

  /** Throws a RangeError for a head that does not fit what is there. */
  tensors(heads: HeadReader): readonly Tensor[] {
    return heads.each((fields) => this.#tensor(fields.list()));
  }

  #tensor(fields: HeadReader): Tensor {
    const name = fields.text();
    const datatype = fields.text();
    const shape = fields.each((dimensions) => dimensions.count());
    const bytes = this.#bytes(fields.count(), fields.done ? undefined : fields.count());
    if (!isDatatype(datatype)) throw new RangeError(`unknown datatype '${datatype}'`);
    const elementBytes = byteSize(datatype);
    if (elementBytes > 0 && elementCount(shape) * elementBytes !== bytes.byteLength) {
      throw new RangeError(`tensor '${name}' has other bytes than its shape says`);
    }
    return { name, datatype, shape, bytes };
  }

  #bytes(length: number, offset: number | undefined): Uint8Array {
    if (offset !== undefined) {
      const bytes = this.#memory?.fromProcess.read(offset, length);
      if (!bytes) throw new RangeError("no memory is shared");
      this.#read(offset);
      return bytes;
    }
    const end = this.#at + length;
    if (end > this.#payload.byteLength) throw new RangeError("the frame ends too early");
    const bytes = this.#payload.subarray(this.#at, end);
    this.#at = padded(end);
    return bytes;
  }
}
