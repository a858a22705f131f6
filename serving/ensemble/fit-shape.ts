import { type Shape, shapeMatches } from "../../protocol/shape.ts";

/**
 * The shape that a tensor has for a model which batches otherwise than the one that it comes from: a batch of one is put
 * before the dimensions, or taken away. A shape that fits as it is, or not at all, stays as it is.
 *
 * @param dims as the model declares them, without a batch dimension
 */
export function fitShape(shape: Shape, dims: Shape, batching: boolean): Shape {
  if (batching) return shapeMatches(dims, shape) ? [1, ...shape] : shape;
  return shape[0] === 1 && shapeMatches(dims, shape.slice(1)) ? shape.slice(1) : shape;
}
