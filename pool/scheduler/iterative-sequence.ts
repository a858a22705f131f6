import type { PendingRequest } from "../../serving/scheduler.ts";
import type { SequenceId } from "./sequence.ts";
import type { SequenceModel } from "./sequence-model.ts";

/**
 * Gives requests of a model with `iterative_sequence` a sequence each, unless they bring one: a model is given the same
 * request again and again until it answers.
 */
export function iterativeSequences({
  controls,
}: SequenceModel): (pending: PendingRequest) => PendingRequest {
  const isText = controls.some(
    ({ control, datatype }) => control.kind === "CONTROL_SEQUENCE_CORRID" && datatype === "BYTES",
  );
  let last = 0n;
  const nextId = (): SequenceId => (isText ? String(++last) : ++last);
  return (pending) => (pending.request.sequence ? pending : inSequence(pending, nextId(), true));
}

/** The same request for its next turn. @param now on the scheduler's clock */
export function nextTurn(pending: PendingRequest, id: SequenceId, now: number): PendingRequest {
  return { ...inSequence(pending, id, false), enqueuedAt: now };
}

function inSequence(pending: PendingRequest, id: SequenceId, start: boolean): PendingRequest {
  return { ...pending, request: { ...pending.request, sequence: { id, start, end: false } } };
}
