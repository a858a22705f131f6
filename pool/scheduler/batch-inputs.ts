import { datatypeOfConfig } from "../../protocol/datatype.ts";
import type { BatchInput } from "../../protocol/model-config.ts";
import { elementCount, type Shape } from "../../protocol/shape.ts";
import type { TensorParts } from "../instance/messages.ts";

/** The values of a tensor and its shape. */
interface Values {
  readonly shape: Shape;
  readonly values: readonly number[];
}

/**
 * Makes the inputs that tell a model what the requests of a ragged batch look like. They count requests, not items.
 *
 * @param shapesOf what each request gives for an input, as the model sees it and with the batch dimension
 */
export function batchInputs(
  stated: readonly BatchInput[],
  shapesOf: (input: string) => readonly Shape[],
): readonly TensorParts[] {
  return stated.flatMap(({ kind, targetName, dataType, sourceInput: [source = ""] }) => {
    const { shape, values } = valuesOf[kind](shapesOf(source));
    const datatype = datatypeOfConfig(dataType) === "FP32" ? "FP32" : "INT32";
    const numbers = datatype === "FP32" ? Float32Array.from(values) : Int32Array.from(values);
    const parts = [new Uint8Array(numbers.buffer)];
    return targetName.map((name) => ({ name, datatype, shape, parts }));
  });
}

const valuesOf: Readonly<Record<BatchInput["kind"], (shapes: readonly Shape[]) => Values>> = {
  BATCH_ELEMENT_COUNT: (shapes) => list(shapes.map(elementCount)),
  BATCH_ACCUMULATED_ELEMENT_COUNT: (shapes) => list(accumulated(shapes)),
  BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: (shapes) => list([0, ...accumulated(shapes)]),
  // Only its shape says something.
  BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: (shapes) =>
    list(Array.from({ length: Math.max(...shapes.map(elementCount)) }, () => 0)),
  BATCH_ITEM_SHAPE: (shapes) => {
    const items = itemShapes(shapes);
    return { shape: [items.length, items[0]?.length ?? 0], values: items.flat() };
  },
  BATCH_ITEM_SHAPE_FLATTEN: (shapes) => list(itemShapes(shapes).flat()),
};

function list(values: readonly number[]): Values {
  return { shape: [values.length], values };
}

function accumulated(shapes: readonly Shape[]): number[] {
  let sum = 0;
  return shapes.map((shape) => (sum += elementCount(shape)));
}

/** One for each item, without the batch dimension. */
function itemShapes(shapes: readonly Shape[]): readonly Shape[] {
  return shapes.flatMap(([items = 0, ...item]) => Array.from({ length: items }, () => item));
}
