import { dynamicBatchScheduler } from "../../pool/scheduler/dynamic-batch-scheduler.ts";
import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelQueuePolicy,
} from "../../protocol/model-config.ts";
import { SchedulerStand } from "./scheduler-stand.ts";
import { modelInput, modelOutput, servedModel } from "./served-model.ts";

/** `dynamic_batching { }` of a config, as a test changes it. */
export const plainBatching: ModelDynamicBatching = {
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

/** A queue policy that demands nothing, likewise. */
export const noPolicy: ModelQueuePolicy = {
  timeoutAction: "REJECT",
  defaultTimeoutMicroseconds: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
};

interface Given extends Partial<ModelDynamicBatching> {
  readonly maxBatchSize?: number;
  readonly instances?: number;
  readonly input?: ModelConfig["input"];
}

/** A stand whose model batches at most 8 items on one instance unless told otherwise. */
export function dynamicStand({
  maxBatchSize = 8,
  instances = 1,
  input = [modelInput("IN", "TYPE_FP32", [4])],
  ...batching
}: Given = {}): SchedulerStand {
  const dynamicBatching = { ...plainBatching, ...batching };
  const model = servedModel("m", {
    maxBatchSize,
    input,
    output: [modelOutput("OUT", "TYPE_FP32", [4])],
    dynamicBatching,
  });
  const create = dynamicBatchScheduler.bind(undefined, model.config, dynamicBatching);
  return new SchedulerStand(model, create, instances);
}
