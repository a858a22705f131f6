import type { ModelSequenceBatching } from "../../protocol/model-config.ts";
import { maxWaiting, type Scheduler } from "../../serving/scheduler.ts";
import type { InstanceGroup, ModelInstance } from "../instance/model-instance.ts";
import { dynamicBatchScheduler } from "./dynamic-batch-scheduler.ts";
import type { SequenceBatcher, SequenceBatcherOptions } from "./sequence-batcher.ts";
import { sequenceRequest } from "./sequence-request.ts";
import { SequenceSlots } from "./sequence-slots.ts";
import type { Sequence } from "./sequence.ts";

type Oldest = NonNullable<ModelSequenceBatching["oldest"]>;

/**
 * The strategy `oldest`: keeps up to `max_candidate_sequences` going on an instance and lets a dynamic batcher join
 * their requests, oldest first, one of each sequence at a time.
 */
export class OldestSequenceBatcher implements SequenceBatcher {
  readonly slots: SequenceSlots;
  readonly #options: SequenceBatcherOptions;
  readonly #instances: OneInstance;
  readonly #batcher: Scheduler;

  constructor(options: SequenceBatcherOptions, oldest: Oldest) {
    const { config } = options.model;
    const candidates = oldest.maxCandidateSequences || Math.max(1, config.maxBatchSize);
    this.slots = new SequenceSlots(Math.min(candidates, maxWaiting));
    this.#options = options;
    this.#instances = new OneInstance(options.instance);
    this.#batcher = dynamicBatchScheduler(
      config,
      { ...oldest, priorityLevels: 0, defaultPriorityLevel: 0, priorityQueuePolicy: {} },
      { ...options, instances: this.#instances },
    );
  }

  wake(sequence: Sequence): void {
    const request = sequence.running ? undefined : sequenceRequest(this.#options, sequence);
    if (!request) return;
    this.#options.keeper.take(sequence);
    // From here on the reference looks at no timeout.
    this.#batcher.enqueue({ ...request, request: { ...request.request, timeoutMicroseconds: 0 } });
  }

  hasRoom(): void {
    this.#instances.hasRoom();
  }

  close(): void {
    void this.#batcher.stop();
  }
}

/** A group of its own for one of a model's instances: a sequence never runs on another. */
class OneInstance implements InstanceGroup {
  readonly instances: readonly ModelInstance[];
  readonly healthy = true;
  readonly #instance: ModelInstance;
  #listener: () => void = () => {};

  constructor(instance: ModelInstance) {
    this.instances = [instance];
    this.#instance = instance;
  }

  next(): ModelInstance | undefined {
    return this.#instance.hasRoom ? this.#instance : undefined;
  }

  onRoom(listener: () => void): void {
    this.#listener = listener;
  }

  hasRoom(): void {
    this.#listener();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
