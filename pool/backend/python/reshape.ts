import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { Shape } from "../../../protocol/shape.ts";
import type { Tensor } from "../../../protocol/tensor.ts";

/** Gives a tensor the shape that the other side knows it by. */
export type Reshape = (tensor: Tensor) => Tensor;

/** Inputs as the model sees them, where the config has a `reshape` for them. */
export function inputReshape({ input, maxBatchSize }: ModelConfig): Reshape {
  return reshapeBy(
    input,
    maxBatchSize > 0,
    ({ dims, reshape }) => reshape && [dims, reshape.shape],
  );
}

/** Outputs as clients see them. */
export function outputReshape({ output, maxBatchSize }: ModelConfig): Reshape {
  return reshapeBy(
    output,
    maxBatchSize > 0,
    ({ dims, reshape }) => reshape && [reshape.shape, dims],
  );
}

interface Reshapable {
  readonly name: string;
  readonly dims: Shape;
  readonly reshape?: { readonly shape: Shape };
}

function reshapeBy<T extends Reshapable>(
  tensors: readonly T[],
  batched: boolean,
  sides: (tensor: T) => readonly [from: Shape, to: Shape] | undefined,
): Reshape {
  const known = new Map(tensors.map((tensor) => [tensor.name, sides(tensor)]));
  return (tensor) => {
    const [from, to] = known.get(tensor.name) ?? [];
    if (!from || !to) return tensor;
    const batch = batched ? tensor.shape.slice(0, 1) : [];
    const own = tensor.shape.slice(batch.length);
    // The n-th variable dimension of the one side is the n-th of the other.
    const variable = own.filter((_, i) => from[i] === -1);
    const rest = to.map((dimension) => (dimension === -1 ? (variable.shift() ?? 1) : dimension));
    return { ...tensor, shape: [...batch, ...rest] };
  };
}
