import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readInitialStates } from "../../../pool/scheduler/implicit-state-files.ts";
import type { SequenceState } from "../../../protocol/model-config.ts";
import { testFolder } from "../../helpers/onnx-version.ts";

type Initial = SequenceState["initialState"][number];

const initial: Initial = { dataType: "TYPE_FP32", dims: [2], dataFile: "sum", name: "start" };

function stateWith(given: Partial<Initial>, more: Partial<SequenceState> = {}): SequenceState {
  const one = { ...initial, ...given };
  return {
    inputName: "SUM",
    outputName: "SUM_OUT",
    dataType: one.dataType,
    dims: one.dims,
    initialState: [one],
    useSameBufferForInputOutput: false,
    useGrowableMemory: false,
    ...more,
  };
}

/** A model's folder whose only file is `initial_state/sum`. */
function folderWith(content: Uint8Array): string {
  const folder = testFolder();
  mkdirSync(path.join(folder, "initial_state"));
  writeFileSync(path.join(folder, "initial_state", "sum"), content);
  return folder;
}

const read = (state: SequenceState, content: Uint8Array): Promise<unknown> =>
  readInitialStates([state], folderWith(content)).then((found) => [...found]);

describe("readInitialStates", () => {
  it("reads as many bytes as the state has", async () => {
    const content = Uint8Array.from({ length: 12 }, (_, i) => i);
    const found = await readInitialStates([stateWith({})], folderWith(content));
    expect(Buffer.from(found.get("SUM") ?? [])).toEqual(Buffer.from(content.subarray(0, 8)));
  });

  it("reads strings with their lengths", async () => {
    const strings = Buffer.from("\u0001\0\0\0a\u0002\0\0\0bc", "latin1");
    const found = await readInitialStates(
      [stateWith({ dataType: "TYPE_STRING" })],
      folderWith(strings),
    );
    expect(Buffer.from(found.get("SUM") ?? [])).toEqual(strings);
  });

  it("leaves out what begins as zeros", async () => {
    const zero = stateWith({}, { initialState: [{ ...initial, zeroData: true }] });
    const { dataFile: _, ...withoutFile } = { ...initial, zeroData: true };
    expect(await read({ ...zero, initialState: [withoutFile] }, new Uint8Array(0))).toEqual([]);
    expect(await read({ ...zero, initialState: [] }, new Uint8Array(0))).toEqual([]);
  });

  const refusals: [string, SequenceState, Uint8Array, string][] = [
    [
      "a file that is too short",
      stateWith({}),
      new Uint8Array(7),
      "initial_state setting expects 8 bytes, but the data provided from sum only has 7 bytes.",
    ],
    [
      "a file that is not there",
      stateWith({ dataFile: "other" }),
      new Uint8Array(8),
      "initial_state of state 'SUM': file 'other' does not exist in the model's folder 'initial_state'",
    ],
    [
      "a file above the folder",
      stateWith({ dataFile: "../sum" }),
      new Uint8Array(8),
      "initial_state of state 'SUM': file '../sum' is not below the model's folder 'initial_state'",
    ],
    [
      "strings that end too early",
      stateWith({ dataType: "TYPE_STRING", dims: [1] }),
      Buffer.from("\u0009\0\0\0abc", "latin1"),
      "initial_state of state 'SUM': given 1 strings in 7 bytes, expected 1 whole ones",
    ],
    [
      "too few strings",
      stateWith({ dataType: "TYPE_STRING" }),
      Buffer.from("\u0001\0\0\0a", "latin1"),
      "initial_state of state 'SUM': given 1 strings in 5 bytes, expected 2 whole ones",
    ],
    [
      "two initial states",
      stateWith({}, { initialState: [initial, initial] }),
      new Uint8Array(8),
      "initial_state field for state input 'SUM' must contain exactly one or zero element. Found '2' elements.",
    ],
    [
      "an initial state without a name",
      stateWith({ name: "" }),
      new Uint8Array(8),
      "Field 'name' must be set when using initial_state for state input 'SUM'.",
    ],
  ];
  it.each(refusals)("refuses %s", async (_, state, content, message) => {
    await expect(read(state, content)).rejects.toMatchObject({ code: "INVALID_ARG", message });
  });

  it("refuses two states of one name", async () => {
    const states = [stateWith({}), stateWith({})];
    await expect(readInitialStates(states, folderWith(new Uint8Array(8)))).rejects.toThrow(
      "State input name 'SUM' specified more than once.",
    );
  });
});
