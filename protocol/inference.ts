import type { Parameters } from "./parameters.ts";
import type { Tensor } from "./tensor.ts";

/** An output the client asks for. */
export interface RequestedOutput {
  readonly name: string;
  /** Return the best N classes as `<value>:<index>[:<label>]` strings instead of the tensor. */
  readonly classification?: number;
}

/** Flags of a request that belongs to a sequence. */
export interface SequenceOptions {
  readonly id: bigint | string;
  readonly start: boolean;
  readonly end: boolean;
}

/** What a client may ask of a cache: to run the request anew and keep that answer, or to stay out altogether. */
export type CacheControl = "no-cache" | "no-store";

/** One v2 inference call, free of its transport. */
export interface InferenceRequest {
  readonly modelName: string;
  /** As the client wrote it; "" stands for the highest ready version. */
  readonly modelVersion: string;
  /** Chosen by the client, "" when it chose none; echoed in the response. */
  readonly id: string;
  readonly inputs: readonly Tensor[];
  /** Empty: all outputs of the model. */
  readonly outputs: readonly RequestedOutput[];
  readonly parameters: Parameters;
  /** 1 is highest; 0 means the model's default level. */
  readonly priority: number;
  /** How long it may wait in queues, in microseconds; 0 means no bound. */
  readonly timeoutMicroseconds: number;
  readonly sequence?: SequenceOptions;
  readonly cacheControl?: CacheControl;
}

/** One of the answers to a request, and what is known of the others. */
export interface StreamedResponse {
  readonly response: InferenceResponse;
  /** Nothing comes after it; where no response says so, the end comes by itself. */
  readonly final: boolean;
}

/** One answer to a request. */
export interface InferenceResponse {
  readonly modelName: string;
  /** The version that ran, never "". */
  readonly modelVersion: string;
  readonly id: string;
  readonly outputs: readonly Tensor[];
  readonly parameters: Parameters;
}
