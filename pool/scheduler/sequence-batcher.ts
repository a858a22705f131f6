import type { InferenceError } from "../../protocol/error.ts";
import type { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type { Clock } from "../../serving/clock.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import type { ModelInstance } from "../instance/model-instance.ts";
import type { SequenceModel } from "./sequence-model.ts";
import type { SequenceSlots } from "./sequence-slots.ts";
import type { Sequence } from "./sequence.ts";

/** Forms the batches of one instance, from the sequences that have a slot on it: one for each strategy. */
export interface SequenceBatcher {
  readonly slots: SequenceSlots;
  /** A sequence in one of the slots may have a request to run. */
  wake(sequence: Sequence): void;
  /** The instance may be able to run again. */
  hasRoom(): void;
  /** Nothing will run any more. */
  close(): void;
}

/** Keeps the sequences, whatever the strategy: what a batcher asks of its scheduler. */
export interface SequenceKeeper {
  /** The next request of a sequence leaves the line; none follows until it is answered. */
  take(sequence: Sequence): PendingRequest;
  /** The request that was taken has been answered, well or ill. */
  answered(sequence: Sequence, error?: InferenceError): void;
  /** The model wants the request that was taken again, before any other of its sequence. */
  again(sequence: Sequence, pending: PendingRequest): void;
}

/** What a batcher works with. */
export interface SequenceBatcherOptions {
  readonly model: SequenceModel;
  readonly keeper: SequenceKeeper;
  readonly instance: ModelInstance;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
}
