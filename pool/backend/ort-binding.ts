import { createRequire } from "node:module";
import { isMainThread } from "node:worker_threads";

/**
 * onnxruntime-node's native binding, below its public API: the public `run()` waits for a turn of the event loop and
 * checks every argument again, which makes a small model cost 18 µs a run instead of 10, and its classes take memory in
 * every thread. It is an inner part, so the dependency is pinned to the exact version that this was written against.
 */
export interface OrtSession {
  readonly inputMetadata: readonly OrtValueMetadata[];
  readonly outputMetadata: readonly OrtValueMetadata[];
  loadModel(path: string, options: object): void;
  loadModel(buffer: ArrayBufferLike, byteOffset: number, byteLength: number, options: object): void;
  run(
    feeds: Readonly<Record<string, OrtTensor>>,
    fetches: Readonly<Record<string, null>>,
  ): Record<string, OrtTensor>;
  dispose(): void;
}

export interface OrtValueMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  /** `TensorProto.DataType`. */
  readonly type: number;
  /** -1 where the dimension is symbolic. */
  readonly shape: readonly number[];
}

export type OrtData = Exclude<NodeJS.TypedArray, Uint8ClampedArray> | readonly string[];

/** A tensor as the binding reads and makes it. */
export class OrtTensor {
  readonly location = "cpu";
  readonly type: string;
  readonly data: OrtData;
  readonly dims: readonly number[];

  constructor(type: string, data: OrtData, dims: readonly number[]) {
    this.type = type;
    this.data = data;
    this.dims = dims;
  }
}

interface OrtBinding {
  readonly InferenceSession: new () => OrtSession;
  initOrtOnce(logLevel: number, tensorConstructor: typeof OrtTensor, isMainThread: boolean): void;
  listSupportedBackends(): readonly { readonly name: string; readonly bundled: boolean }[];
}

/** Fatal only: every error of a load or a run also comes back as an exception, and that one we log with its model. */
const fatalLogLevel = 4;

const native: OrtBinding = createRequire(import.meta.url)(
  `onnxruntime-node/bin/napi-v6/${process.platform}/${process.arch}/onnxruntime_binding.node`,
);
native.initOrtOnce(fatalLogLevel, OrtTensor, isMainThread);

/** A session that has no model yet. */
export function newSession(): OrtSession {
  return new native.InferenceSession();
}

/** Execution providers that this build of onnxruntime-node knows; whether one works only a session can tell. */
export function supportedProviders(): readonly string[] {
  return native.listSupportedBackends().map(({ name }) => name);
}
