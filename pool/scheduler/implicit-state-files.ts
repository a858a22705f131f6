import { bytesElements, joinBytesElements } from "../../protocol/bytes-tensor.ts";
import { invalidArgument } from "../../protocol/error.ts";
import type { SequenceState } from "../../protocol/model-config.ts";
import { elementCount } from "../../protocol/shape.ts";
import { readSideFile } from "../side-file.ts";
import { initialTensor, zeroSize } from "./implicit-state.ts";

const maxFileBytes = 2 ** 30;

/**
 * Reads what the states of a model begin with, by input name, as far as it lies in files; all others begin as zeros.
 * Throws INVALID_ARG, mostly in the reference's words, for a state that cannot begin as its config says.
 */
export async function readInitialStates(
  states: readonly SequenceState[],
  modelDirectory: string,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const bytes = new Map<string, Uint8Array>();
  const names = new Set<string>();
  for (const state of states) {
    const { inputName, initialState } = state;
    if (names.has(inputName)) {
      throw invalidArgument(`State input name '${inputName}' specified more than once.`);
    }
    names.add(inputName);
    checkCount(state);
    const file = initialState[0]?.dataFile;
    if (file !== undefined) bytes.set(inputName, await readState(state, file, modelDirectory));
  }
  return bytes;
}

function checkCount({ inputName, initialState }: SequenceState): void {
  if (initialState.length > 1) {
    throw invalidArgument(
      `initial_state field for state input '${inputName}' must contain exactly one or zero element. ` +
        `Found '${initialState.length}' elements.`,
    );
  }
  if (initialState[0]?.name === "") {
    throw invalidArgument(
      `Field 'name' must be set when using initial_state for state input '${inputName}'.`,
    );
  }
}

async function readState(
  state: SequenceState,
  file: string,
  modelDirectory: string,
): Promise<Uint8Array> {
  const content = await readSideFile({
    subject: `initial_state of state '${state.inputName}'`,
    path: file,
    modelDirectory,
    folder: "initial_state",
    maxBytes: maxFileBytes,
  });
  const tensor = initialTensor(state);
  if (tensor.datatype === "BYTES") return checkedStrings(state, content, tensor.shape);
  const expected = zeroSize(tensor);
  if (content.length >= expected) return content.subarray(0, expected);
  throw invalidArgument(
    `initial_state setting expects ${expected} bytes, but the data provided from ${file} only has ` +
      `${content.length} bytes.`,
  );
}

function checkedStrings(
  { inputName }: SequenceState,
  content: Uint8Array,
  shape: readonly number[],
): Uint8Array {
  const elements = [...bytesElements(content)];
  const expected = elementCount(shape);
  const isWhole = Buffer.compare(joinBytesElements(elements), content) === 0;
  if (isWhole && elements.length === expected) return content;
  throw invalidArgument(
    `initial_state of state '${inputName}': given ${elements.length} strings in ${content.length} bytes, ` +
      `expected ${expected} whole ones`,
  );
}
