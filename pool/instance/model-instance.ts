import type { ExecutionTimings } from "../../serving/model-statistics.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

/** One copy of a model, on one device, that runs one execution at a time. */
export interface ModelInstance {
  /** `<group>_<i>`, as logs and errors name it. */
  readonly name: string;
  /**
   * True when another execution may be handed over now. While a short one runs the next may already wait on the
   * instance, so that it never idles for a hop between threads; behind a long one it may not, so that batches grow.
   */
  readonly hasRoom: boolean;
  /** True where a request must not run a second time, because the model may have acted on it already. */
  readonly runsOnce?: boolean | undefined;
  /**
   * Runs the requests together and answers each through its sink. Resolves with what it took, in the same turn as
   * the answers; rejects with an InferenceError, and has then answered none of them.
   */
  execute(requests: readonly PendingRequest[]): Promise<ExecutionTimings>;
}

/** The instances of one model version. */
export interface InstanceGroup {
  readonly instances: readonly ModelInstance[];
  /** Any instance with room, the one with the least to do first. */
  next(): ModelInstance | undefined;
  /** Told whenever an instance gets room: after an execution, a restart. One listener: the scheduler. */
  onRoom(listener: () => void): void;
  /** False while no instance is able to run (all crashed and waiting for their restart). */
  readonly healthy: boolean;
  /** Ends the instances and frees their memory; executions that still run are given up. */
  close(): Promise<void>;
}
