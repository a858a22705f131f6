import { describe, expect, it } from "vitest";
import { implicitStates } from "../../../pool/scheduler/implicit-state.ts";
import type { SequenceState } from "../../../protocol/model-config.ts";
import { noParameters } from "../../../protocol/parameters.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { noSequenceBatching } from "./sequence-stand.ts";

const state: SequenceState = {
  inputName: "SUM_IN",
  outputName: "SUM_OUT",
  dataType: "TYPE_FP32",
  dims: [2, -1],
  initialState: [],
  useSameBufferForInputOutput: false,
  useGrowableMemory: false,
};

const statesOf = (given: Partial<SequenceState>, bytes = new Map<string, Uint8Array>()) =>
  implicitStates({ ...noSequenceBatching, state: [{ ...state, ...given }] }, true, bytes);

const responseWith = (...outputs: Tensor[]) => ({
  modelName: "m",
  modelVersion: "1",
  id: "",
  parameters: noParameters,
  outputs,
});

describe("implicitStates", () => {
  it("begins with zeros, and with 1 for a variable dimension", () => {
    expect(statesOf({}).initial).toEqual([
      { name: "SUM_IN", datatype: "FP32", shape: [1, 2, 1], bytes: new Uint8Array(8) },
    ]);
  });

  it("begins with empty strings", () => {
    const [initial] = statesOf({ dataType: "TYPE_STRING", dims: [3] }).initial;
    expect(initial).toMatchObject({ datatype: "BYTES", bytes: new Uint8Array(12) });
  });

  it("begins with the shape and the bytes of its initial state", () => {
    const bytes = new Uint8Array(24).fill(1);
    const initialState = [{ dataType: "TYPE_FP32", dims: [2, 3], dataFile: "f", name: "n" }];
    const [initial] = statesOf({ initialState }, new Map([["SUM_IN", bytes]])).initial;
    expect(initial).toMatchObject({ shape: [1, 2, 3], bytes });
  });

  it("has no batch dimension where the model has none", () => {
    const batching = { ...noSequenceBatching, state: [state] };
    expect(implicitStates(batching, false, new Map()).initial[0]?.shape).toEqual([2, 1]);
  });

  it("hands an output on as the next input, in a copy of its own", () => {
    const states = statesOf({});
    const batch = new Uint8Array(64).fill(5);
    const output = { name: "SUM_OUT", datatype: "FP32", shape: [1, 2, 2] } as const;
    const [next] = states.next(
      states.initial,
      responseWith({ ...output, bytes: batch.subarray(16, 32) }),
    );
    expect(next).toEqual({ ...output, name: "SUM_IN", bytes: new Uint8Array(16).fill(5) });
    expect(next?.bytes.buffer.byteLength).toBe(16);
  });

  it("keeps a state that a response leaves out", () => {
    const states = statesOf({});
    expect(states.next(states.initial, responseWith())).toEqual(states.initial);
  });

  it("refuses a state that is too large for any memory", () => {
    expect(() => statesOf({ dims: [2 ** 30, 2] })).toThrow(
      "state 'SUM_IN' has 8589934592 bytes, expected at most 1073741824",
    );
  });
});
