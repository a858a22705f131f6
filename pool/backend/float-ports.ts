import type { TensorMetadata } from "../../protocol/metadata.ts";

const inputPrefix = "float32_of:";
const outputPrefix = "float32_from:";

/** The name under which a session takes a BF16 input as float32, see `onnx-file.ts`. */
export function floatInput(name: string): string {
  return `${inputPrefix}${name}`;
}

/** The name under which a session gives a BF16 output as float32. */
export function floatOutput(name: string): string {
  return `${outputPrefix}${name}`;
}

/** The tensor that a port of a rewritten graph stands for; any other tensor stands for itself. */
export function behindFloatPort(tensor: TensorMetadata): TensorMetadata {
  const prefix = [inputPrefix, outputPrefix].find((start) => tensor.name.startsWith(start));
  if (prefix === undefined) return tensor;
  return { ...tensor, name: tensor.name.slice(prefix.length), datatype: "BF16" };
}
