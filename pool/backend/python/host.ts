import type { Call } from "../../../protocol/call.ts";
import type { LoadOptions, UnloadOptions } from "../../../protocol/engine.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import type { ResponseSink } from "../../../serving/scheduler.ts";
import type { CustomMetrics } from "./custom-metrics.ts";

/** What a model that runs here may ask of the server. All but the metrics reject with an InferenceError. */
export interface ModelHost {
  /** The version that a request would reach. */
  model(name: string, version: string): Promise<ServedModel>;
  /** Has another model answer. */
  infer(request: InferenceRequest, call: Call, sink: ResponseSink): Promise<void>;
  modelReady(name: string, version: string): Promise<boolean>;
  load(name: string, options: LoadOptions): Promise<void>;
  unload(name: string, options: UnloadOptions): Promise<void>;
  readonly metrics: CustomMetrics;
}
