import type { Call } from "../protocol/call.ts";
import { datatypeOfConfig } from "../protocol/datatype.ts";
import type { Engine, LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { InferenceResponse, StreamedResponse } from "../protocol/inference.ts";
import type { ModelMetadata, TensorMetadata } from "../protocol/metadata.ts";
import type { ModelConfig, ModelInput, ModelOutput } from "../protocol/model-config.ts";
import type { ProgressListener } from "../protocol/progress.ts";
import type { RepositoryModel } from "../repository/repository-model.ts";
import type { RepositoryIndexEntry } from "../protocol/repository-index.ts";
import type { ModelStatistics } from "../protocol/statistics.ts";
import { validRequest, type ValidInferenceRequest } from "../protocol/valid-request.ts";
import type { ModelObservation } from "../telemetry/model-observation.ts";
import type { ModelLifecycle } from "./lifecycle/model-lifecycle.ts";
import { SingleResponse } from "./single-response.ts";
import { ResponseStream } from "./response-stream.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { ResponseSink } from "./scheduler.ts";
import { tracedRequest } from "./traced-request.ts";

/** What the engine asks of those who load and unload models. */
export type RunningModels = Pick<
  ModelLifecycle,
  | "find"
  | "versions"
  | "running"
  | "ready"
  | "index"
  | "load"
  | "unload"
  | "activate"
  | "probe"
  | "close"
  | "closing"
>;

export interface ServingOptions {
  /** Ready only while every model answers that should; otherwise as long as the server runs. */
  readonly strictReadiness: boolean;
  /** @defaultValue systemClock */
  readonly clock?: Clock;
  /** Forgets the cached answers of a model; absent where no answers are cached. */
  readonly flushCache?: ((name: string) => Promise<void>) | undefined;
}

/**
 * Finds the version that a request is for and hands it to that version's scheduler, which may run it in this process or
 * send it to another one.
 */
export class ServingEngine implements Engine {
  readonly #models: RunningModels;
  readonly #strictReadiness: boolean;
  readonly #clock: Clock;
  readonly #flushCache: ServingOptions["flushCache"];

  constructor(models: RunningModels, options: ServingOptions) {
    this.#models = models;
    this.#strictReadiness = options.strictReadiness;
    this.#clock = options.clock ?? systemClock;
    this.#flushCache = options.flushCache;
  }

  async ready(): Promise<boolean> {
    return !this.#models.closing && (this.#models.ready() || !this.#strictReadiness);
  }

  async modelReady(name: string, version: string): Promise<boolean> {
    try {
      return this.#models.find(name, version).healthy;
    } catch (error) {
      if (error instanceof InferenceError && notThere.has(error.code)) return false;
      throw error;
    }
  }

  model(name: string, version: string): ServedModel {
    return this.#models.find(name, version).model;
  }

  async metadata(name: string, version: string): Promise<ModelMetadata> {
    const { model } = this.#models.find(name, version);
    const asked = version === "" ? this.#models.versions(name) : [{ model }];
    const versions = asked.map((running) => running.model.version);
    return { name, versions, ...tensorMetadata(model.config) };
  }

  answersDigest(name: string, version: string): string | undefined {
    try {
      const { model, answersDigest } = this.#models.find(name, version);
      return answersDigest && `${model.version}.${answersDigest}`;
    } catch {
      return undefined;
    }
  }

  infer(request: ValidInferenceRequest, call: Call): Promise<InferenceResponse> {
    return new Promise((resolve, reject) => {
      this.enqueue(request, call, new SingleResponse(resolve, reject));
    });
  }

  async *stream(request: ValidInferenceRequest, call: Call): AsyncIterable<StreamedResponse> {
    const responses = new ResponseStream(call, this.#clock);
    this.enqueue(request, call, responses);
    let complete = false;
    try {
      yield* responses;
      complete = true;
    } finally {
      if (!complete) call.cancel();
    }
  }

  progress(name: string, version: string, listener: ProgressListener): () => void {
    return this.#models.find(name, version).progress?.(listener) ?? (() => {});
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    const ofModel = name === "" ? this.#models.running() : this.#models.versions(name);
    if (name !== "" && ofModel.length === 0) {
      throw new InferenceError(StatusCode.InvalidArg, `requested model '${name}' is not available`);
    }
    const wanted = ofModel.filter(({ model }) => version === "" || model.version === version);
    if (version !== "" && wanted.length === 0) {
      const text = `requested model version is not available for model '${name}'`;
      throw new InferenceError(StatusCode.InvalidArg, text);
    }
    return Promise.all(wanted.map(async ({ statistics }) => statistics.snapshot()));
  }

  /** What the metrics read at a scrape. */
  observations(): Promise<readonly ModelObservation[]> {
    return Promise.all(this.#models.running().map(async ({ statistics }) => statistics.observe()));
  }

  repositoryIndex(onlyReady: boolean): Promise<readonly RepositoryIndexEntry[]> {
    return this.#models.index(onlyReady);
  }

  async load(name: string, options: LoadOptions): Promise<void> {
    await this.#models.load(name, options);
  }

  async activate(name: string): Promise<readonly string[]> {
    await this.#models.activate(name);
    return this.servingVersions(name);
  }

  /** Of one model, ascending. */
  servingVersions(name: string): readonly string[] {
    return this.#models.versions(name).map(({ model }) => model.version);
  }

  /** Opens what nobody may see yet, and ends it again; rejects with the reason that it cannot be served. */
  probe(model: RepositoryModel): Promise<void> {
    return this.#models.probe(model);
  }

  async unload(name: string, options: UnloadOptions): Promise<void> {
    await this.#models.unload(name, options);
  }

  async flushCache(name: string): Promise<void> {
    this.#models.find(name, "");
    if (!this.#flushCache) {
      const text = "the server has no response cache: expected --cache-config";
      throw new InferenceError(StatusCode.Unsupported, text);
    }
    await this.#flushCache(name);
  }

  async close(signal: AbortSignal): Promise<void> {
    const givenUp = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#models.close(), givenUp]);
  }

  /** Has a sink get the answers, with the word which is the last one. */
  enqueue(request: ValidInferenceRequest, call: Call, sink: ResponseSink): void {
    const { model, scheduler } = this.#models.find(request.modelName, request.modelVersion);
    // A load may have put another version in place since the request was checked.
    const current = request.model === model ? request : validRequest(model, request);
    const pending = { request: current, call, sink, enqueuedAt: this.#clock.now() };
    scheduler.enqueue(tracedRequest(pending));
  }
}

const notThere: ReadonlySet<StatusCode> = new Set([StatusCode.NotFound, StatusCode.Unavailable]);

function tensorMetadata(config: ModelConfig): Omit<ModelMetadata, "name" | "versions"> {
  const batch = config.maxBatchSize > 0 ? [-1] : [];
  const metadata = (tensors: readonly (ModelInput | ModelOutput)[]): TensorMetadata[] =>
    tensors.flatMap(({ name, dataType, dims }) => {
      const datatype = datatypeOfConfig(dataType);
      return datatype ? [{ name, datatype, shape: [...batch, ...dims] }] : [];
    });
  return {
    platform: config.platform || config.backend,
    inputs: metadata(config.input),
    outputs: metadata(config.output),
  };
}
