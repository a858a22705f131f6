import { joinBytesElements } from "../../protocol/bytes-tensor.ts";
import { byteSize, datatypeOfConfig, type Datatype } from "../../protocol/datatype.ts";
import type { ModelSequenceBatching, SequenceControl } from "../../protocol/model-config.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { SequenceId } from "./sequence.ts";

/** What the control inputs tell a model about one row of a batch. */
export interface SequenceSignals {
  readonly start: boolean;
  readonly end: boolean;
  /** False for a row that stands for a slot without a request. */
  readonly ready: boolean;
  readonly id: SequenceId;
}

/** A control input of a model as a tensor without bytes. */
export interface ControlInput extends Omit<Tensor, "bytes"> {
  readonly control: SequenceControl;
}

/** The control inputs that a config asks for, each of a single element. */
export function controlInputs(
  { controlInput }: ModelSequenceBatching,
  isBatched: boolean,
): readonly ControlInput[] {
  const shape = isBatched ? [1, 1] : [1];
  return controlInput.flatMap(({ name, control: [control] }) =>
    control ? [{ name, control, datatype: controlDatatype(control), shape }] : [],
  );
}

function controlDatatype(control: SequenceControl): Datatype {
  if (control.kind === "CONTROL_SEQUENCE_CORRID") {
    return datatypeOfConfig(control.dataType) ?? "UINT64";
  }
  if (control.int32FalseTrue.length > 0) return "INT32";
  return control.fp32FalseTrue.length > 0 ? "FP32" : "BOOL";
}

/** The tensor of a control input for one row. */
export function controlTensor(input: ControlInput, signals: SequenceSignals): Tensor {
  const { name, datatype, shape, control } = input;
  return { name, datatype, shape, bytes: controlBytes(control, datatype, signals) };
}

function controlBytes(
  control: SequenceControl,
  datatype: Datatype,
  { start, end, ready, id }: SequenceSignals,
): Uint8Array {
  if (control.kind === "CONTROL_SEQUENCE_CORRID") return correlationIdBytes(datatype, id);
  const flags = {
    CONTROL_SEQUENCE_START: start,
    CONTROL_SEQUENCE_END: end,
    CONTROL_SEQUENCE_READY: ready,
  };
  return flagBytes(control, Number(flags[control.kind]));
}

/** Each list has the value for false first, and only one list is given. */
function flagBytes(control: SequenceControl, index: number): Uint8Array {
  const { int32FalseTrue, fp32FalseTrue, boolFalseTrue } = control;
  const bytes = new Uint8Array(int32FalseTrue.length + fp32FalseTrue.length > 0 ? 4 : 1);
  const view = new DataView(bytes.buffer);
  if (int32FalseTrue.length > 0) view.setInt32(0, int32FalseTrue[index] ?? 0, true);
  else if (fp32FalseTrue.length > 0) view.setFloat32(0, fp32FalseTrue[index] ?? 0, true);
  else view.setUint8(0, Number(boolFalseTrue[index] ?? false));
  return bytes;
}

/** An id that is too large for its datatype loses its upper bytes, as in the reference. */
function correlationIdBytes(datatype: Datatype, id: SequenceId): Uint8Array {
  if (datatype === "BYTES") {
    return joinBytesElements([new TextEncoder().encode(typeof id === "string" ? id : "")]);
  }
  const bytes = new Uint8Array(8);
  if (typeof id === "bigint") new DataView(bytes.buffer).setBigUint64(0, id, true);
  return bytes.subarray(0, byteSize(datatype));
}
