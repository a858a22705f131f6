import type { Shape } from "../../protocol/shape.ts";

/** What the `reshape` of a config says: the dimensions of one tensor without the batch, as clients see them, and as the model does. */
export interface Reshape {
  readonly client: Shape;
  readonly model: Shape;
}

type Reshapable = {
  readonly name: string;
  readonly dims: Shape;
  readonly reshape?: { readonly shape: Shape };
};

/** The reshapes of those tensors of a config that have one, by name. */
export function reshapes(tensors: readonly Reshapable[]): ReadonlyMap<string, Reshape> {
  return new Map(
    tensors.flatMap(({ name, dims, reshape }) =>
      reshape ? [[name, { client: dims, model: reshape.shape }] as const] : [],
    ),
  );
}

/** From what the model sees back to what clients see. */
export function inverse({ client, model }: Reshape): Reshape {
  return { client: model, model: client };
}

/** What becomes of dimensions that fit the client's side: its n-th variable one is the model's n-th. */
export function substitute({ client, model }: Reshape, own: Shape): Shape {
  const variable = own.filter((_, i) => client[i] === -1);
  let next = 0;
  return model.map((dimension) => (dimension === -1 ? (variable[next++] ?? 1) : dimension));
}
