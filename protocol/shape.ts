/** Dimensions, outermost first; -1 stands for a variable one where a config or metadata speaks. */
export type Shape = readonly number[];

/** The number of elements of a concrete shape; 1 for a scalar. Beyond 2^53 the result is not exact but still huge. */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (const dimension of shape) count *= dimension;
  return count;
}

/** `[-1,16]`, as error texts print a shape. */
export function shapeText(shape: Shape): string {
  return `[${shape.join(",")}]`;
}

/** True when every dimension agrees, -1 in the expected shape standing for any. */
export function shapeMatches(expected: Shape, given: Shape): boolean {
  return (
    expected.length === given.length &&
    expected.every((dimension, i) => dimension === -1 || dimension === given[i])
  );
}
