import type { Call } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Engine, LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import type {
  InferenceRequest,
  InferenceResponse,
  StreamedResponse,
} from "../protocol/inference.ts";
import type { Jobs } from "../protocol/job.ts";
import type { ModelMetadata, ServerMetadata } from "../protocol/metadata.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { ProgressListener } from "../protocol/progress.ts";
import type { RepositoryIndexEntry } from "../protocol/repository-index.ts";
import type { ModelStatistics } from "../protocol/statistics.ts";
import type { Uploads } from "../protocol/upload.ts";
import { validRequest } from "../protocol/valid-request.ts";

/**
 * What both transports call, and the only caller of the engine: from here on nobody knows HTTP from gRPC.
 * Every method rejects with an InferenceError.
 */
export class DataPlane {
  readonly server: ServerMetadata;
  /** Keeps durable requests; without it there are none. */
  readonly jobs: Jobs | undefined;
  /** Takes model versions; without it none are taken. */
  readonly uploads: Uploads | undefined;
  readonly #engine: Engine;
  #draining = false;

  constructor(engine: Engine, server: ServerMetadata, jobs?: Jobs, uploads?: Uploads) {
    this.#engine = engine;
    this.server = server;
    this.jobs = jobs;
    this.uploads = uploads;
  }

  live(): boolean {
    return true;
  }

  async ready(): Promise<boolean> {
    return !this.#draining && (await this.#engine.ready());
  }

  /** From now on the server says that it is not ready, so that balancers look elsewhere. */
  drain(): void {
    this.#draining = true;
  }

  modelReady(name: string, version: string): Promise<boolean> {
    return this.#engine.modelReady(name, version);
  }

  metadata(name: string, version: string): Promise<ModelMetadata> {
    return this.#engine.metadata(name, version);
  }

  async config(name: string, version: string): Promise<ModelConfig> {
    return (await this.#engine.model(name, version)).config;
  }

  /** Equal ones: answers to equal requests are equal. Undefined where answers may not be kept, or nobody answers. */
  answersDigest(name: string, version: string): string | undefined {
    return this.#engine.answersDigest?.(name, version);
  }

  /** The version that would answer now: the skins ask it for what their codec must know of the inputs. */
  model(name: string, version: string): ServedModel | Promise<ServedModel> {
    return this.#engine.model(name, version);
  }

  statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    return this.#engine.statistics(name, version);
  }

  repositoryIndex(onlyReady: boolean): Promise<readonly RepositoryIndexEntry[]> {
    return this.#engine.repositoryIndex(onlyReady);
  }

  load(name: string, options: LoadOptions): Promise<void> {
    return this.#engine.load(name, options);
  }

  /** Has a model answer from what the repository says now. @returns its versions that answer */
  activate(name: string): Promise<readonly string[]> {
    return this.#engine.activate(name);
  }

  unload(name: string, options: UnloadOptions): Promise<void> {
    return this.#engine.unload(name, options);
  }

  flushCache(name: string): Promise<void> {
    return this.#engine.flushCache(name);
  }

  /**
   * Tells how the start of a version goes on that requests wait for.
   * @returns ends that
   */
  progress(name: string, version: string, listener: ProgressListener): () => void {
    return this.#engine.progress?.(name, version, listener) ?? (() => {});
  }

  /** Exactly one response. */
  async infer(request: InferenceRequest, call: Call): Promise<InferenceResponse> {
    const found = this.#engine.model(request.modelName, request.modelVersion);
    const model = found instanceof Promise ? await found : found;
    const valid = validRequest(model, request);
    const charged = call.permit?.charge(valid.batchSize);
    if (charged) await charged;
    try {
      // With its "await" the answer arrives two turns of the microtasks sooner.
      return await this.#engine.infer(valid, call);
    } catch (error) {
      throw withRetryAfter(error, call);
    }
  }

  /** As many responses as the model gives. */
  async *stream(request: InferenceRequest, call: Call): AsyncIterable<StreamedResponse> {
    const model = await this.#engine.model(request.modelName, request.modelVersion);
    const valid = validRequest(model, request);
    await call.permit?.charge(valid.batchSize);
    try {
      yield* this.#engine.stream(valid, call);
    } catch (error) {
      throw withRetryAfter(error, call);
    }
  }
}

/** An engine that is full says so; how fast it goes on is known here. */
function withRetryAfter(error: unknown, { permit }: Call): unknown {
  if (!permit || !(error instanceof InferenceError)) return error;
  if (error.code !== StatusCode.Unavailable || error.retryAfterSeconds !== undefined) return error;
  const { code, message, cause } = error;
  const retryAfterSeconds = permit.retryAfterSeconds();
  return new InferenceError(code, message, { cause, retryAfterSeconds });
}
