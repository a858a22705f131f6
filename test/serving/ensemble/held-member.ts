import type { InferenceResponse } from "../../../protocol/inference.ts";
import { noParameters } from "../../../protocol/parameters.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { Shape } from "../../../protocol/shape.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import type { RunningVersion } from "../../../serving/running-version.ts";
import type { PendingRequest, Scheduler } from "../../../serving/scheduler.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

/** A part of an ensemble whose answers the test holds in its hands; all its tensors are FP32. */
export class HeldMember implements Scheduler {
  readonly taken: PendingRequest[] = [];
  readonly inflight = 0;
  readonly version: RunningVersion;

  constructor(name: string, config: Partial<ModelConfig>) {
    this.version = {
      model: servedModel(name, { maxBatchSize: 8, ...config }),
      scheduler: this,
      healthy: true,
      statistics: new ModelStatisticsRecorder({ name, version: "1", tags: {} }),
      close: () => Promise.resolve(),
    };
  }

  enqueue(pending: PendingRequest): void {
    this.taken.push(pending);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  /** The request that it took last. */
  get last(): PendingRequest {
    const last = this.taken.at(-1);
    if (!last) throw new Error("nothing was sent to this member");
    return last;
  }

  /** Answers a request, the last one if none is given, with the named outputs, each the bytes of one number a row. */
  answer(
    outputs: Readonly<Record<string, number>>,
    shape: Shape = [1, 1],
    { sink } = this.last,
  ): void {
    sink.send(this.#response(outputs, shape), true);
  }

  /** The same for one that answers many times. */
  respond(
    outputs: Readonly<Record<string, number>>,
    final: boolean,
    pending: PendingRequest = this.last,
  ): void {
    pending.sink.send(this.#response(outputs, [1, 1]), final);
  }

  #response(outputs: Readonly<Record<string, number>>, shape: Shape): InferenceResponse {
    const { model } = this.version;
    return {
      modelName: model.name,
      modelVersion: model.version,
      id: "",
      parameters: noParameters,
      outputs: Object.entries(outputs).map(([name, value]) => {
        const bytes = new Uint8Array(Float32Array.of(value).buffer);
        return { name, datatype: "FP32", shape, bytes };
      }),
    };
  }
}

/** With inputs A and, if it is said, an optional B, and outputs Y and Z: one number each. */
export function held(name: string, more: Partial<ModelConfig> = {}): HeldMember {
  return new HeldMember(name, {
    input: [
      modelInput("A", "TYPE_FP32", [1]),
      modelInput("B", "TYPE_FP32", [1], { optional: true }),
    ],
    output: [modelOutput("Y", "TYPE_FP32", [1]), modelOutput("Z", "TYPE_FP32", [1])],
    ...more,
  });
}

/** A step as a config has it. */
export function step(
  modelName: string,
  inputMap: Readonly<Record<string, string>>,
  outputMap: Readonly<Record<string, string>>,
): NonNullable<ModelConfig["ensembleScheduling"]>["step"][number] {
  return { modelName, modelVersion: -1, inputMap, outputMap, modelNamespace: "" };
}
