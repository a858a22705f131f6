import type { RequestedOutput } from "../../protocol/inference.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { PendingRequest, ResponseSink } from "../../serving/scheduler.ts";
import { zeroBytes } from "./implicit-state.ts";
import type { SequenceBatcherOptions } from "./sequence-batcher.ts";
import { controlTensor, type SequenceSignals } from "./sequence-controls.ts";
import type { SequenceModel } from "./sequence-model.ts";
import type { Sequence } from "./sequence.ts";

/**
 * What an instance is given for the first waiting request of a sequence: the request with its control inputs and with
 * the states of the sequence. Its answer leaves the new states behind. Changes nothing yet.
 */
export function sequenceRequest(
  { model, keeper }: SequenceBatcherOptions,
  sequence: Sequence,
): PendingRequest | undefined {
  const [pending] = sequence.waiting;
  if (!pending) return undefined;
  const { request, sink } = pending;
  const { start = false, end = false } = request.sequence ?? {};
  const states = start ? model.states.initial : (sequence.states ?? model.states.initial);
  const signals = { start, end, ready: true, id: sequence.id };
  return {
    ...pending,
    ...(model.batching.iterativeSequence && { again: () => keeper.again(sequence, pending) }),
    request: {
      ...request,
      inputs: [...request.inputs, ...controlTensors(model, signals), ...states],
      outputs: withStates(model, request.outputs),
    },
    sink: {
      send(response, final) {
        if (response) sequence.states = model.states.next(states, response);
        sink.send(response && withoutStates(model, request.outputs, response), final);
        if (final) keeper.answered(sequence);
      },
      get room() {
        return sink.room;
      },
      fail(error) {
        sink.fail(error);
        keeper.answered(sequence, error);
      },
    },
  };
}

/** What stands in a batch for a slot without a request: of the same shapes as the given one, all zero, and not ready. */
export function nullRequest(model: SequenceModel, like: PendingRequest): PendingRequest {
  const controls = controlTensors(model, { start: false, end: false, ready: false, id: 0n });
  const inputs = like.request.inputs.map(
    (input) =>
      controls.find(({ name }) => name === input.name) ?? { ...input, bytes: zeroBytes(input) },
  );
  const request = { ...like.request, id: "", inputs };
  return { request, call: like.call.part(), sink: nobody, enqueuedAt: like.enqueuedAt };
}

const nobody: ResponseSink = { send: () => {}, fail: () => {} };

function controlTensors({ controls }: SequenceModel, signals: SequenceSignals): readonly Tensor[] {
  return controls.map((input) => controlTensor(input, signals));
}

type Outputs = readonly RequestedOutput[];

function withStates(model: SequenceModel, wanted: Outputs): Outputs {
  const { outputNames } = model.states;
  if (outputNames.length === 0) return wanted;
  const outputs = wanted.length > 0 ? wanted : model.config.output;
  const names = new Set([...outputs.map(({ name }) => name), ...outputNames]);
  return [...names].map((name) => ({ name }));
}

function withoutStates<Response extends { readonly outputs: readonly Tensor[] }>(
  model: SequenceModel,
  wanted: Outputs,
  response: Response,
): Response {
  if (model.states.outputNames.length === 0) return response;
  const visible = new Set(
    (wanted.length > 0 ? wanted : model.config.output).map(({ name }) => name),
  );
  return { ...response, outputs: response.outputs.filter(({ name }) => visible.has(name)) };
}
