import type { InferenceResponse, StreamedResponse } from "./inference.ts";
import type { ModelMetadata } from "./metadata.ts";
import type { ProgressListener } from "./progress.ts";
import type { RepositoryIndexEntry } from "./repository-index.ts";
import type { ServedModel } from "./served-model.ts";
import type { ModelStatistics } from "./statistics.ts";
import type { ValidInferenceRequest } from "./valid-request.ts";
import type { Call } from "./call.ts";

/** What a load may bring along instead of the repository's own files. */
export interface LoadOptions {
  /** A whole model config as JSON text, instead of config.pbtxt. */
  readonly config?: string;
  /** File contents by path below the model's directory (`1/model.onnx`), instead of its version directories. */
  readonly files?: ReadonlyMap<string, Uint8Array>;
}

export interface UnloadOptions {
  /** Unload the models an ensemble is composed of, too. */
  readonly unloadDependents: boolean;
}

/**
 * Something that serves models: in this process, or somewhere behind a queue.
 * Every method rejects with an InferenceError; a version of "" stands for the highest one that is ready.
 */
export interface Engine {
  /** True when every model that should serve does; see `--strict-readiness`. */
  ready(): Promise<boolean>;
  modelReady(name: string, version: string): Promise<boolean>;
  /** The version that a request sent now would reach. May answer at once, so that the hot path does not wait a turn. */
  model(name: string, version: string): ServedModel | Promise<ServedModel>;
  metadata(name: string, version: string): Promise<ModelMetadata>;
  /** Of the version that a request sent now would reach: another one for other files or another config. Undefined for one whose answers may not be kept. */
  answersDigest?(name: string, version: string): string | undefined;
  /** Exactly one response, or a rejection. */
  infer(request: ValidInferenceRequest, call: Call): Promise<InferenceResponse>;
  /** Zero, one or many responses, as the model answers. */
  stream(request: ValidInferenceRequest, call: Call): AsyncIterable<StreamedResponse>;
  /**
   * Tells how the start of a version goes on, if one goes on; nothing where versions are always there.
   * @returns ends that
   */
  progress?(name: string, version: string, listener: ProgressListener): () => void;
  /** All models for a name of "", all versions for a version of "". */
  statistics(name: string, version: string): Promise<readonly ModelStatistics[]>;
  repositoryIndex(onlyReady: boolean): Promise<readonly RepositoryIndexEntry[]>;
  load(name: string, options: LoadOptions): Promise<void>;
  /**
   * Has a model answer from what the repository says now, whoever decides what is loaded.
   * @returns its versions that answer, ascending
   */
  activate(name: string): Promise<readonly string[]>;
  unload(name: string, options: UnloadOptions): Promise<void>;
  /** Forgets the answers of a model that are cached. */
  flushCache(name: string): Promise<void>;
  /** Takes no new request, finishes what runs, frees everything; gives up waiting when the signal says so. */
  close(signal: AbortSignal): Promise<void>;
}
