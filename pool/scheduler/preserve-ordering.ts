import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { ExecutionTimings, InstanceGroup, ModelInstance } from "../instance/model-instance.ts";
import type { PendingRequest, ResponseSink } from "./scheduler.ts";

/**
 * The same instances, but answering in the order in which they were given work: what a fast one has ready waits
 * until the slow ones before it are done. The scheduler hands over work in the order of arrival.
 */
export function preserveOrdering(instances: InstanceGroup): InstanceGroup {
  const order = new ExecutionOrder();
  return {
    get instances() {
      return instances.instances.map((inner) => order.ordered(inner));
    },
    next() {
      const inner = instances.next();
      return inner && order.ordered(inner);
    },
    onRoom: (listener) => instances.onRoom(listener),
    get healthy() {
      return instances.healthy;
    },
    close: () => instances.close(),
  };
}

class ExecutionOrder {
  readonly #ordered = new WeakMap<ModelInstance, ModelInstance>();
  /** Settled when every execution begun so far has answered. */
  #earlier: Promise<unknown> = Promise.resolve();

  ordered(inner: ModelInstance): ModelInstance {
    let instance = this.#ordered.get(inner);
    if (!instance) this.#ordered.set(inner, (instance = this.#wrap(inner)));
    return instance;
  }

  #wrap(inner: ModelInstance): ModelInstance {
    return {
      name: inner.name,
      get hasRoom() {
        return inner.hasRoom;
      },
      execute: (requests) => this.#execute(inner, requests),
    };
  }

  async #execute(
    inner: ModelInstance,
    requests: readonly PendingRequest[],
  ): Promise<ExecutionTimings> {
    const held = requests.map((pending) => ({ ...pending, sink: new HeldSink(pending.sink) }));
    const execution = inner.execute(held);
    const earlier = this.#earlier;
    this.#earlier = Promise.allSettled([earlier, execution]);
    await earlier;
    for (const { sink } of held) sink.release();
    return execution;
  }
}

/** Keeps answers back until it is released, and passes later ones on. */
class HeldSink implements ResponseSink {
  readonly #sink: ResponseSink;
  #answers: (() => void)[] | undefined = [];

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    this.#answer(() => this.#sink.send(response, final));
  }

  fail(error: InferenceError): void {
    this.#answer(() => this.#sink.fail(error));
  }

  release(): void {
    const answers = this.#answers ?? [];
    this.#answers = undefined;
    for (const answer of answers) answer();
  }

  #answer(answer: () => void): void {
    if (this.#answers) this.#answers.push(answer);
    else answer();
  }
}
