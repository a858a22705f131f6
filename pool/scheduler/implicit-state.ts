import { byteSize, datatypeOfConfig } from "../../protocol/datatype.ts";
import { invalidArgument } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { ModelSequenceBatching, SequenceState } from "../../protocol/model-config.ts";
import { elementCount } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { lengthBytes } from "../../protocol/bytes-tensor.ts";

/** More than any model keeps for one sequence; a larger one is a slip in the config. */
const maxStateBytes = 2 ** 30;

/** Keeps the states of a sequence between its requests, so that the model does not have to. */
export interface ImplicitStates {
  /** The state inputs of a first request. */
  readonly initial: readonly Tensor[];
  /** The outputs that hold the states afterwards. */
  readonly outputNames: readonly string[];
  /** The state inputs of the next request; a state that the response leaves out stays as it was. */
  next(current: readonly Tensor[], response: InferenceResponse): readonly Tensor[];
}

/**
 * The states that a config asks for. Throws INVALID_ARG for one that is too large.
 *
 * @param initialBytes by input name: what does not begin as zeros
 */
export function implicitStates(
  { state: states }: ModelSequenceBatching,
  isBatched: boolean,
  initialBytes: ReadonlyMap<string, Uint8Array>,
): ImplicitStates {
  const batch = isBatched ? [1] : [];
  return {
    initial: states.map((state) => {
      const tensor = initialTensor(state);
      const bytes = initialBytes.get(state.inputName) ?? zeroBytes(tensor);
      return { ...tensor, shape: [...batch, ...tensor.shape], bytes };
    }),
    outputNames: states.map(({ outputName }) => outputName),
    next: (current, { outputs }) =>
      current.map((state, i) => {
        const output = outputs.find(({ name }) => name === states[i]?.outputName);
        // A view would keep the whole batch in memory for as long as the sequence is idle.
        return output ? { ...output, name: state.name, bytes: output.bytes.slice() } : state;
      }),
  };
}

/** Datatype and shape of a state before the first request, without the batch. Throws INVALID_ARG when it is too large. */
export function initialTensor(state: SequenceState): Omit<Tensor, "bytes"> {
  const [initial] = state.initialState;
  const tensor = {
    name: state.inputName,
    datatype: datatypeOfConfig(state.dataType) ?? "FP32",
    shape: (initial?.dims ?? state.dims).map((dimension) => (dimension < 0 ? 1 : dimension)),
  };
  const size = zeroSize(tensor);
  if (size <= maxStateBytes) return tensor;
  throw invalidArgument(
    `state '${state.inputName}' has ${size} bytes, expected at most ${maxStateBytes}`,
  );
}

/** Zeros, or empty strings. */
export function zeroBytes(tensor: Omit<Tensor, "bytes">): Uint8Array {
  return new Uint8Array(zeroSize(tensor));
}

/** The bytes of a tensor whose elements are all zero or empty. */
export function zeroSize({ datatype, shape }: Omit<Tensor, "bytes">): number {
  return elementCount(shape) * (byteSize(datatype) || lengthBytes);
}
