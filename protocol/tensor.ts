import type { Datatype } from "./datatype.ts";
import type { Shape } from "./shape.ts";

/**
 * A named tensor as it travels: little-endian, row-major bytes; each BYTES element is a 4-byte length and its bytes.
 * The bytes are a view, often on a whole request body: never write to them, and mind alignment before making a typed array.
 */
export interface Tensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: Shape;
  readonly bytes: Uint8Array;
}
