/** Dimensions, outermost first; -1 stands for a variable one where a config or metadata speaks. */
export type Shape = readonly number[];

/** The number of elements of a concrete shape; 1 for a scalar. Beyond 2^53 the result is not exact but still huge. */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (const dimension of shape) count *= dimension;
  return count;
}

const shownDimensions = 32;

/** `[-1,16]`, as error texts print a shape; of a client's endless one only the beginning. */
export function shapeText(shape: Shape): string {
  const more = shape.length > shownDimensions ? ",…" : "";
  return `[${shape.slice(0, shownDimensions).join(",")}${more}]`;
}

/** What `isDimension` asks for, in words. */
export const dimensionBound = "integers from 0 to 2^31-1";

/**
 * True for a dimension that a tensor can have. No message can hold more elements; a tensor without any could name a
 * larger one, and no backend takes it.
 */
export function isDimension(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 31;
}

/** True when every dimension agrees, -1 in the expected shape standing for any. */
export function shapeMatches(expected: Shape, given: Shape): boolean {
  return (
    expected.length === given.length &&
    expected.every((dimension, i) => dimension === -1 || dimension === given[i])
  );
}

/** True when two batches hold items of one shape: they differ in the first dimension at most, and do have one. */
export function sameItemShape(left: Shape, right: Shape): boolean {
  return (
    left.length > 0 &&
    left.length === right.length &&
    left.every((dimension, i) => i === 0 || dimension === right[i])
  );
}
