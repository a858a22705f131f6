import type { InstanceGroup, ModelInstance } from "../../pool/instance/model-instance.ts";
import type { ExecutionTimings } from "../../serving/model-statistics.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";
import { responseTo } from "./requests.ts";

const noTime: Promise<ExecutionTimings> = Promise.resolve({
  computeInputNanoseconds: 0,
  computeInferNanoseconds: 0,
  computeOutputNanoseconds: 0,
});

/** Instances that always have room and answer before they return. */
export class InstantInstances implements InstanceGroup {
  readonly instances: readonly ModelInstance[];
  readonly healthy = true;
  closed = false;

  constructor(answer: (request: ValidInferenceRequest) => InferenceResponse = responseTo) {
    const execute = (requests: readonly PendingRequest[]): Promise<ExecutionTimings> => {
      for (const { request, sink } of requests) sink.send(answer(request), true);
      return noTime;
    };
    this.instances = [{ name: "instant", hasRoom: true, execute }];
  }

  next(): ModelInstance | undefined {
    return this.instances[0];
  }

  onRoom(): void {}

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}
