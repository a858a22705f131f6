import type { Call } from "../../protocol/call.ts";
import type { Engine, LoadOptions, UnloadOptions } from "../../protocol/engine.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse, StreamedResponse } from "../../protocol/inference.ts";
import type { ModelMetadata } from "../../protocol/metadata.ts";
import type { RepositoryIndexEntry } from "../../protocol/repository-index.ts";
import type { ModelStatistics } from "../../protocol/statistics.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";

/** How a model of the {@link MemoryEngine} answers: with any number of responses, over any time. */
export type Answers = (
  request: ValidInferenceRequest,
  call: Call,
) => Iterable<InferenceResponse> | AsyncIterable<InferenceResponse>;

/** An engine whose models are functions; what it was asked to load, unload and forget stays on record. */
export class MemoryEngine implements Engine {
  readonly loaded: [name: string, options: LoadOptions][] = [];
  readonly unloaded: [name: string, options: UnloadOptions][] = [];
  readonly flushed: string[] = [];
  readonly activated: string[] = [];
  isReady = true;
  /** For a test to put in place. */
  progress?: NonNullable<Engine["progress"]>;
  /** Likewise. */
  answersDigest?: NonNullable<Engine["answersDigest"]>;
  readonly #models = new Map<string, { readonly model: ServedModel; readonly answers: Answers }>();

  add(model: ServedModel, answers: Answers): void {
    this.#models.set(model.name, { model, answers });
  }

  ready(): Promise<boolean> {
    return Promise.resolve(this.isReady);
  }

  modelReady(name: string, version: string): Promise<boolean> {
    return Promise.resolve(this.#find(name, version) !== undefined);
  }

  model(name: string, version: string): ServedModel {
    return this.#known(name, version).model;
  }

  async metadata(name: string, version: string): Promise<ModelMetadata> {
    const { model } = this.#known(name, version);
    const tensor = { name: "INPUT", datatype: "FP32", shape: [-1, 16] } as const;
    return { name: model.name, versions: ["1"], platform: "memory", inputs: [tensor], outputs: [] };
  }

  async infer(request: ValidInferenceRequest, call: Call): Promise<InferenceResponse> {
    for await (const { response } of this.stream(request, call)) return response;
    throw new InferenceError(StatusCode.Internal, "expected a single response, got 0");
  }

  /** Which response is the last one it does not say. */
  async *stream(request: ValidInferenceRequest, call: Call): AsyncGenerator<StreamedResponse> {
    const { answers } = this.#known(request.modelName, request.modelVersion);
    for await (const response of answers(request, call)) yield { response, final: false };
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    const { model } = this.#known(name, version);
    return [{ ...someStatistics, name: model.name, version: model.version }];
  }

  async repositoryIndex(onlyReady: boolean): Promise<readonly RepositoryIndexEntry[]> {
    const ready = [...this.#models.keys()].map(
      (name) => ({ name, version: "1", state: "READY" }) as const,
    );
    return onlyReady ? ready : [...ready, { name: "never-loaded" }];
  }

  async load(name: string, options: LoadOptions): Promise<void> {
    this.loaded.push([name, options]);
  }

  async activate(name: string): Promise<readonly string[]> {
    this.activated.push(name);
    return this.#models.has(name) ? ["1"] : [];
  }

  async unload(name: string, options: UnloadOptions): Promise<void> {
    this.unloaded.push([name, options]);
  }

  async flushCache(name: string): Promise<void> {
    this.flushed.push(name);
  }

  async close(): Promise<void> {}

  #find(name: string, version: string): { model: ServedModel; answers: Answers } | undefined {
    return version === "" || version === "1" ? this.#models.get(name) : undefined;
  }

  #known(name: string, version: string): { model: ServedModel; answers: Answers } {
    const found = this.#find(name, version);
    if (found) return found;
    const which = version === "" ? "" : ` version ${version}`;
    throw new InferenceError(
      StatusCode.NotFound,
      `Request for unknown model: '${name}'${which} is not found`,
    );
  }
}

/** The response to a request that gives every input back as the output of its place. */
export function echo(request: ValidInferenceRequest): InferenceResponse {
  const { model, id, inputs, parameters } = request;
  const outputs = inputs.map((input, i) => ({
    ...input,
    name: model.config.output[i]?.name ?? input.name,
  }));
  return { modelName: model.name, modelVersion: model.version, id, outputs, parameters };
}

const once = { count: 1, nanoseconds: 1000 };

const someStatistics: Omit<ModelStatistics, "name" | "version"> = {
  lastInference: 1_763_700_000_000,
  inferenceCount: 4,
  executionCount: 1,
  inferenceStats: {
    success: once,
    fail: { count: 0, nanoseconds: 0 },
    queue: once,
    computeInput: once,
    computeInfer: { count: 1, nanoseconds: 2 ** 40 },
    computeOutput: once,
    cacheHit: once,
    cacheMiss: once,
  },
  batchStats: [{ batchSize: 4, computeInput: once, computeInfer: once, computeOutput: once }],
  responseStats: {
    "0": {
      computeInfer: once,
      computeOutput: once,
      success: once,
      fail: once,
      emptyResponse: once,
      cancel: once,
    },
  },
};
