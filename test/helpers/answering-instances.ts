import { setImmediate as nextTurn } from "node:timers/promises";
import type { InstanceGroup, ModelInstance } from "../../pool/instance/model-instance.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";
import type { ExecutionTimings } from "../../serving/model-statistics.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

const noTime: ExecutionTimings = {
  computeInputNanoseconds: 0,
  computeInferNanoseconds: 0,
  computeOutputNanoseconds: 0,
};

/**
 * Instances of a decoupled model: a request is answered as often as the first FP32 value of its input says, and below
 * zero fails after so many answers. Each answer holds its number, in as many values as the input has. With the parameter
 * `tells_end` the last answer says that it is the last.
 */
export class AnsweringInstances implements InstanceGroup {
  readonly instances: readonly ModelInstance[];
  readonly healthy = true;
  /** Answers so far. */
  answered = 0;
  /** Ids of the requests that nobody waited for any more. */
  readonly cancelled: string[] = [];

  constructor() {
    const execute = async (requests: readonly PendingRequest[]): Promise<ExecutionTimings> => {
      await Promise.all(requests.map((pending) => this.#answer(pending)));
      return noTime;
    };
    this.instances = [{ name: "answering", hasRoom: true, execute }];
  }

  next(): ModelInstance | undefined {
    return this.instances[0];
  }

  onRoom(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #answer({ request, call, sink }: PendingRequest): Promise<void> {
    const times = Buffer.from(request.inputs[0]?.bytes ?? []).readFloatLE();
    const tellsEnd = request.parameters.get("tells_end") === true;
    for (let i = 1; i <= Math.abs(times); i += 1) {
      if (call.cancelled) {
        this.cancelled.push(request.id);
        sink.fail(call.cancelled);
        return;
      }
      this.answered += 1;
      sink.send(numbered(request, i), tellsEnd && i === times);
      await (sink.room ?? nextTurn());
    }
    if (times < 0) sink.fail(new InferenceError(StatusCode.Internal, "failed as asked"));
    else if (!tellsEnd || times === 0) sink.send(undefined, true);
  }
}

function numbered(request: ValidInferenceRequest, number: number): InferenceResponse {
  const { id, model, inputs } = request;
  const shape = inputs[0]?.shape ?? [];
  const bytes = Buffer.from(new Float32Array(shape[0] ?? 0).fill(number).buffer);
  return {
    modelName: model.name,
    modelVersion: model.version,
    id,
    outputs: [{ name: "OUT", datatype: "FP32", shape, bytes }],
    parameters: noParameters,
  };
}
