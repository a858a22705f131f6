import type { Datatype } from "../../protocol/datatype.ts";
import type { ModelDirectory } from "../helpers/model-directory.ts";
import { identityModel } from "../helpers/onnx-model.ts";

/** Models that give their input `x` back as `y`, whatever its size: `list`, `grid`, `words`, and `batch` of rows of four. */
export function writeEchoModels(models: ModelDirectory): void {
  writeEcho(models, { name: "list", datatype: "FP32", dims: [-1] });
  writeEcho(models, { name: "grid", datatype: "FP32", dims: [-1, -1] });
  writeEcho(models, { name: "words", datatype: "BYTES", dims: [-1] });
  writeEcho(models, { name: "batch", datatype: "FP32", dims: [4], maxBatchSize: 8 });
}

interface EchoModel {
  readonly name: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
  readonly maxBatchSize?: number;
}

function writeEcho(
  models: ModelDirectory,
  { name, datatype, dims, maxBatchSize = 0 }: EchoModel,
): void {
  const shape = dims.map((dimension, i) => (dimension === -1 ? `d${i}` : dimension));
  const batched = maxBatchSize > 0 ? ["n", ...shape] : shape;
  const type = datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`;
  const tensor = (tensorName: string): string =>
    `[{ name: "${tensorName}" data_type: ${type} dims: [${dims.join()}] }]`;
  models.model(
    name,
    { 1: identityModel([{ name: "x", datatype, shape: batched }, "y"]) },
    `max_batch_size: ${maxBatchSize} input ${tensor("x")} output ${tensor("y")} instance_group [{ count: 1 }]`,
  );
}

/** The body of a good request to `list`. */
export const goodBody = { inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] };
