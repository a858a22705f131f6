import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { PendingRequest, Scheduler } from "../../serving/scheduler.ts";
import { instancesId } from "../instance/instances-id.ts";

/**
 * The same scheduler for a model that may call itself, also by way of others: refuses a request that could never run,
 * because every instance waits for its answer.
 */
export function withoutEndlessWait(
  scheduler: Scheduler,
  model: ServedModel,
  instances: number,
): Scheduler {
  const id = instancesId(model);
  return {
    enqueue(pending) {
      if (instancesWaiting(pending, id) < instances) scheduler.enqueue(pending);
      else pending.sink.fail(endlessWait(model.name, instances));
    },
    get inflight() {
      return scheduler.inflight;
    },
    stop: () => scheduler.stop(),
  };
}

/** Each execution holds one. */
function instancesWaiting({ call: { callers } }: PendingRequest, id: string): number {
  return callers.filter((caller) => caller.instances === id).length;
}

function endlessWait(name: string, instances: number): InferenceError {
  const text =
    `model '${name}' calls itself while each of its instances waits for such a call: ` +
    `given ${instances} in instance_group, expected more than there are calls within each other`;
  return new InferenceError(StatusCode.Internal, text);
}
