import type { InstanceGroup, ModelInstance } from "../../pool/instance/model-instance.ts";
import type { ExecutionTimings } from "../../serving/model-statistics.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import type { InferenceError } from "../../protocol/error.ts";
import { responseTo } from "./requests.ts";

/** An execution that lasts until the test says so. */
export interface HandHeldExecution {
  readonly instance: string;
  readonly requests: readonly PendingRequest[];
  /** The ids of its requests, joined. */
  readonly ids: string;
  finish(timings?: Partial<ExecutionTimings>): void;
  fail(error: InferenceError): void;
}

/** Instances that run one execution at a time and hand the end of each to the test. */
export class HandHeldInstances implements InstanceGroup {
  readonly instances: readonly ModelInstance[];
  readonly executions: HandHeldExecution[] = [];
  readonly healthy = true;
  readonly #free: Set<ModelInstance>;
  #listener = (): void => {};

  constructor(count = 1) {
    this.instances = Array.from({ length: count }, (_, i) => this.#instance(`instance_${i}`));
    this.#free = new Set(this.instances);
  }

  /** The ids of each execution so far: "a" or "a+b". */
  get ran(): string[] {
    return this.executions.map((execution) => execution.ids);
  }

  next(): ModelInstance | undefined {
    return this.#free.values().next().value;
  }

  onRoom(listener: () => void): void {
    this.#listener = listener;
  }

  /** Each instance takes one more execution, although it has not ended those that it has. */
  makeRoom(): void {
    for (const instance of this.instances) this.#free.add(instance);
    this.#listener();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #instance(name: string): ModelInstance {
    const free = (instance: ModelInstance): void => {
      this.#free.add(instance);
      this.#listener();
    };
    const hasRoom = (instance: ModelInstance): boolean => this.#free.has(instance);
    const begin = (instance: ModelInstance): void => void this.#free.delete(instance);
    const { executions } = this;
    return {
      name,
      get hasRoom() {
        return hasRoom(this);
      },
      execute(requests) {
        begin(this);
        return new Promise((resolve, reject) => {
          executions.push({
            instance: name,
            requests,
            ids: requests.map(({ request }) => request.id).join("+"),
            finish: (timings) => {
              for (const { request, sink } of requests) sink.send(responseTo(request), true);
              resolve({
                computeInputNanoseconds: 0,
                computeInferNanoseconds: 0,
                computeOutputNanoseconds: 0,
                ...timings,
              });
              free(this);
            },
            fail: (error) => {
              reject(error);
              free(this);
            },
          });
        });
      },
    };
  }
}
