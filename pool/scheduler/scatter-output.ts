import { elementCount, type Shape } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { cutRows } from "./rows.ts";

/**
 * Takes the output of a ragged batch apart: one piece for each request, behind each other, of the dimensions that the
 * config states; a variable one is as large as the same dimension of the request's input.
 *
 * @param stated with the batch dimension, if the model has one
 * @param given of each request, the shape of its source input
 * @returns undefined when the pieces do not add up to the output
 */
export function scatterOutput(
  output: Tensor,
  stated: Shape,
  given: readonly Shape[],
): readonly Tensor[] | undefined {
  const shapes = given.map((shape) =>
    stated.map((dimension, i) => (dimension === -1 ? (shape[i] ?? 0) : dimension)),
  );
  const sizes = shapes.map(elementCount);
  const elements = sizes.reduce((sum, size) => sum + size, 0);
  if (elements !== elementCount(output.shape)) return undefined;
  const pieces = cutRows({ ...output, shape: [elements] }, sizes);
  return shapes.map((shape, i) => ({ ...output, shape, bytes: pieces[i] ?? output.bytes }));
}
