import { CustomMetrics } from "../pool/backend/python/custom-metrics.ts";
import type { ModelHost } from "../pool/backend/python/host.ts";
import type { Call } from "../protocol/call.ts";
import type { LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import type { InferenceRequest } from "../protocol/inference.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import type { ServingEngine } from "../serving/serving-engine.ts";

/** Lets models ask an engine, which is there after what starts them, or only when one of them asks. */
export class EngineHost implements ModelHost {
  readonly metrics = new CustomMetrics();
  readonly #engine: () => Promise<ServingEngine>;

  constructor(engine: () => Promise<ServingEngine>) {
    this.#engine = engine;
  }

  async model(name: string, version: string): Promise<ServedModel> {
    return (await this.#engine()).model(name, version);
  }

  async infer(request: InferenceRequest, call: Call, sink: ResponseSink): Promise<void> {
    const engine = await this.#engine();
    const model = engine.model(request.modelName, request.modelVersion);
    engine.enqueue(validRequest(model, request), call, sink);
  }

  async modelReady(name: string, version: string): Promise<boolean> {
    return (await this.#engine()).modelReady(name, version);
  }

  async load(name: string, options: LoadOptions): Promise<void> {
    await (await this.#engine()).load(name, options);
  }

  async unload(name: string, options: UnloadOptions): Promise<void> {
    await (await this.#engine()).unload(name, options);
  }
}
