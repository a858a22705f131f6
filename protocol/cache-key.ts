import type { InferenceRequest, RequestedOutput } from "./inference.ts";
import type { Parameters } from "./parameters.ts";
import type { Tensor } from "./tensor.ts";

/** What an answer depends on beside its request. */
export interface CacheScope {
  readonly tenant: string;
  readonly modelName: string;
  readonly modelVersion: string;
  /** Equal ones: the same files and the same effective config. */
  readonly digest: string;
  /** Those of the model's config, in its order: naming them all is the same as naming none. */
  readonly outputs: readonly Pick<RequestedOutput, "name">[];
}

/** A cryptographic hash over pieces that follow each other; a text stands for its UTF-8. */
export type Hash<Digest> = (pieces: readonly (string | Uint8Array)[]) => Digest;

/**
 * The key under which the answer to a request may be kept and found again, by whoever may share answers. Unequal requests
 * make unequal bytes: a JSON array, which says where it ends, and behind it the tensors, whose lengths it tells. Left out is
 * what changes no answer: the request's id, its priority and its timeout.
 *
 * @param hash of the platform: node and an edge Worker have different ones
 */
export function cacheKey<Digest>(
  scope: CacheScope,
  request: InferenceRequest,
  hash: Hash<Digest>,
): Digest {
  const inputs = sortedByName(request.inputs);
  const head = JSON.stringify([
    layout,
    scope.tenant,
    scope.modelName,
    scope.modelVersion,
    scope.digest,
    inputs.map(inputHead),
    // In their order, which may be that of the answer.
    asksForAll(request.outputs, scope.outputs) ? [] : request.outputs.map(outputHead),
    request.parameters.size === 0 ? [] : parameterHeads(request.parameters),
  ]);
  return hash([head, ...inputs.map(({ bytes }) => bytes)]);
}

/** Another arrangement of the bytes gets another number. */
const layout = 1;

function sortedByName(inputs: readonly Tensor[]): readonly Tensor[] {
  if (inputs.length < 2) return inputs;
  return inputs.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function inputHead({ name, datatype, shape, bytes }: Tensor): unknown {
  return [name, datatype, shape, bytes.byteLength];
}

function asksForAll(requested: readonly RequestedOutput[], all: CacheScope["outputs"]): boolean {
  return (
    requested.length === all.length &&
    requested.every(({ name, classification }, i) => !classification && name === all[i]?.name)
  );
}

function outputHead({ name, classification = 0 }: RequestedOutput): unknown {
  return [name, classification];
}

/** With their types, because the integer 1, the double 1 and the text "1" are three values. */
function parameterHeads(parameters: Parameters): unknown {
  return [...parameters]
    .map(([name, value]) => [name, typeof value, String(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}
