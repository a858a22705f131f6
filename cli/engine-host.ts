import { CustomMetrics } from "../pool/backend/python/custom-metrics.ts";
import type { ModelHost } from "../pool/backend/python/host.ts";
import { anonymous, type Call } from "../protocol/call.ts";
import type { LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import type { InferenceRequest } from "../protocol/inference.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import type { ServingEngine } from "../serving/serving-engine.ts";
import type { AuditAction, AuditLog } from "../telemetry/audit-log.ts";

/** Some model. */
const modelPrincipal = { ...anonymous, name: "model" };

/** Lets models ask an engine, which is there after what starts them, or only when one of them asks. */
export class EngineHost implements ModelHost {
  readonly metrics = new CustomMetrics();
  readonly #engine: () => Promise<ServingEngine>;
  readonly #audit: AuditLog;

  /** @param audit told of the models that models load and unload */
  constructor(engine: () => Promise<ServingEngine>, audit: AuditLog) {
    this.#engine = engine;
    this.#audit = audit;
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
    const engine = await this.#engine();
    await this.#audited("model.load", name, () => engine.load(name, options));
  }

  async unload(name: string, options: UnloadOptions): Promise<void> {
    const engine = await this.#engine();
    await this.#audited("model.unload", name, () => engine.unload(name, options));
  }

  async #audited(action: AuditAction, subject: string, change: () => Promise<void>): Promise<void> {
    const tell = (cause?: unknown): void =>
      this.#audit.write({ action, subject, principal: modelPrincipal, via: "model", cause });
    try {
      await change();
    } catch (cause) {
      tell(cause);
      throw cause;
    }
    tell();
  }
}
