import type { Datatype } from "./datatype.ts";
import type { Shape } from "./shape.ts";

/** What `GET /v2` answers. */
export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

export interface TensorMetadata {
  readonly name: string;
  readonly datatype: Datatype;
  /** With the leading -1 of a batching model. */
  readonly shape: Shape;
}

/** What `GET /v2/models/<name>` answers. */
export interface ModelMetadata {
  readonly name: string;
  /** Ascending. */
  readonly versions: readonly string[];
  readonly platform: string;
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
}
