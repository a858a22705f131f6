import { type InferenceError, invalidArgument } from "../protocol/error.ts";
import type { ModelVersionPolicy } from "../protocol/model-config.ts";

/** The versions that a policy serves of those in the repository, ascending; the latest one without a policy. */
export function chooseVersions(
  policy: ModelVersionPolicy | undefined,
  available: readonly number[],
): readonly number[] {
  const ascending = available.toSorted((a, b) => a - b);
  if (policy?.all) return ascending;
  if (policy?.specific) {
    const wanted = new Set(policy.specific.versions);
    return ascending.filter((version) => wanted.has(version));
  }
  const count = policy?.latest?.numVersions ?? 1;
  return count === 0 ? [] : ascending.slice(-count);
}

/** Why a model with no version to serve cannot be loaded. */
export function noVersionChosen(modelName: string): InferenceError {
  return invalidArgument(
    `at least one version must be available under the version policy of model '${modelName}'`,
  );
}
