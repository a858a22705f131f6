import type {
  ModelSequenceBatching,
  SequenceControl,
  SequenceState,
} from "../../protocol/model-config.ts";
import { refuse, refuseFor, type Refuse } from "./refuse.ts";

/** Checks the settings of the sequence batcher, its control tensors and its states. */
export function checkSequenceBatching(
  batching: ModelSequenceBatching,
  maxBatchSize: number,
  modelName: string,
): void {
  const refuseNamed = refuseFor(modelName);
  checkStrategy(batching, maxBatchSize, refuseNamed);
  checkControls(batching, modelName);
  for (const state of batching.state) checkState(state);
}

function checkStrategy(
  { direct, oldest }: ModelSequenceBatching,
  maxBatchSize: number,
  refuseNamed: Refuse,
): void {
  const utilization = direct?.minimumSlotUtilization ?? 0;
  // Written as what must hold, so that NaN is refused too.
  if (!(utilization >= 0 && utilization <= 1)) {
    refuseNamed("sequence batching minimum slot utilization must be in range (0.0, 1.0]");
  }
  for (const size of oldest?.preferredBatchSize ?? []) {
    if (size <= 0) refuseNamed("sequence batching preferred batch size must be positive");
    // A model without batching runs sequences one by one.
    if (size > Math.max(1, maxBatchSize)) {
      refuseNamed("sequence batching preferred batch size must be <= max batch size");
    }
  }
}

function checkControls(batching: ModelSequenceBatching, modelName: string): void {
  const refuseNamed = refuseFor(modelName);
  const tensors = new Set<string>();
  const kinds = new Set<string>();
  for (const { name, control } of batching.controlInput) {
    if (name === "") refuseNamed("sequence batching control tensor must have a name");
    if (tensors.has(name) || new Set(control.map(({ kind }) => kind)).size > 1) {
      refuseNamed(
        `sequence batching control tensor '${name}' is specified for multiple control kinds`,
      );
    }
    tensors.add(name);
    for (const signal of control) {
      if (kinds.has(signal.kind)) {
        refuseNamed(`sequence batching specifies multiple ${signal.kind} tensors`);
      }
      kinds.add(signal.kind);
      checkSignal(signal, modelName);
    }
  }
}

function checkSignal(signal: SequenceControl, modelName: string): void {
  const refuseNamed = refuseFor(modelName);
  const pairs = Object.entries({
    int32_false_true: signal.int32FalseTrue,
    fp32_false_true: signal.fp32FalseTrue,
    bool_false_true: signal.boolFalseTrue,
  }).filter(([, values]) => values.length > 0);
  if (signal.kind === "CONTROL_SEQUENCE_CORRID") {
    checkCorrelationId(signal, pairs.length > 0, modelName);
    return;
  }
  if (pairs.length === 0) {
    refuseNamed(
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${signal.kind}`,
    );
  }
  if (pairs.length > 1) {
    refuseNamed(
      `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for ${signal.kind}`,
    );
  }
  const wrong = pairs.find(([, values]) => values.length !== 2);
  if (wrong) {
    refuseNamed(
      `sequence batching control '${wrong[0]}' must have exactly 2 entries for ${signal.kind}`,
    );
  }
}

const idTypes = ["TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING"];

function checkCorrelationId(signal: SequenceControl, hasPair: boolean, modelName: string): void {
  if (!idTypes.includes(signal.dataType)) {
    refuse(
      `unexpected data type for control ${signal.kind} for ${modelName}. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING`,
    );
  }
  if (hasPair) {
    refuseFor(modelName)(
      `sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${signal.kind}`,
    );
  }
}

function checkState(state: SequenceState): void {
  for (const initial of state.initialState) {
    if (initial.dataType !== state.dataType) {
      refuse(
        `The data type used for 'initial_state' field of state '${state.inputName}' does not match the state data type.`,
      );
    }
    checkInitialDims(state, initial.dims);
    if (initial.zeroData === undefined && initial.dataFile === undefined) {
      refuse(`initial_state setting expects state '${state.inputName}' to have state_data set`);
    }
  }
}

function checkInitialDims(state: SequenceState, dims: readonly number[]): void {
  if (dims.some((dimension) => dimension < 0)) {
    refuse(
      `'initial_state' field for state input name '${state.inputName}' contains variable dimensions.`,
    );
  }
  if (dims.length !== state.dims.length) {
    refuse(
      `'initial_state' field for state input name '${state.inputName}' has ${dims.length} dimensions, expected ${state.dims.length}`,
    );
  }
  for (const [i, expected] of state.dims.entries()) {
    if (expected === -1 || expected === dims[i]) continue;
    refuse(
      `'initial_state' dim for input name '${state.inputName}' doesn't match 'state' dim description. ${dims[i]} != ${expected}`,
    );
  }
}
