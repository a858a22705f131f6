import type { Principal } from "../../protocol/call.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Expiring } from "../../serving/deadline-heap.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import type { SequenceBatcher } from "./sequence-batcher.ts";

/** As clients name sequences: the number 5 and the text "5" are two of them. */
export type SequenceId = bigint | string;

/**
 * Requests that run one after the other, on one instance, between a START and an END. What the heap of deadlines calls
 * `slot` has nothing to do with the slot on an instance.
 */
export interface Sequence extends Expiring {
  readonly id: SequenceId;
  /** Where the scheduler finds it; see {@link sequenceKey}. */
  readonly key: string;
  /** Those of its requests that do not run yet, in the order in which they came. */
  readonly waiting: PendingRequest[];
  /** One of its requests runs: the next has to wait for the answer. */
  running: boolean;
  /** The instance knows it: a request of it has been answered. */
  begun: boolean;
  /** No further request belongs to it. */
  ended: boolean;
  /** The implicit states for its next request, unless that one is its first. */
  states: readonly Tensor[] | undefined;
  /** When it has to have got a slot, or its next request; Infinity while it may take its time. */
  deadline: number;
  /** Where it has a slot; undefined while it waits for one, and when it is over. */
  batcher: SequenceBatcher | undefined;
}

/** What tells sequences apart: a tenant's are nobody else's, whatever ids others choose. */
export function sequenceKey({ tenant }: Principal, id: SequenceId): string {
  return `${tenant.length} ${tenant} ${typeof id} ${id}`;
}

/** A sequence that nobody has heard of yet. */
export function newSequence(id: SequenceId, key: string): Sequence {
  return {
    id,
    key,
    waiting: [],
    running: false,
    begun: false,
    ended: false,
    states: undefined,
    deadline: Infinity,
    slot: -1,
    batcher: undefined,
  };
}
