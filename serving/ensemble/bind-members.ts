import { type InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { RunningVersion } from "../running-version.ts";
import { checkDecoupled } from "./check-decoupled.ts";
import { checkMembers } from "./check-members.ts";

/** The version that answers, "" standing for the highest; undefined when none does. */
export type FindReady = (name: string, version: string) => RunningVersion | undefined;

/** Why models could not be loaded, by name, as their loads were refused. */
export type LoadErrors = ReadonlyMap<string, InferenceError>;

/**
 * Finds for each step of an ensemble the version that runs it, and checks that they fit together.
 *
 * @param errors of the members' loads just now
 * @throws INVALID_ARG with the reference's text when the ensemble cannot run
 */
export function bindMembers(
  config: ModelConfig,
  find: FindReady,
  errors: LoadErrors = new Map(),
): readonly RunningVersion[] {
  const steps = config.ensembleScheduling?.step ?? [];
  const members = steps.map(({ modelName, modelVersion }) => {
    const version = modelVersion === -1 ? "" : String(modelVersion);
    const member = find(modelName, version);
    if (member) return member;
    if (find(modelName, "")) {
      throw invalidArgument(
        `ensemble '${config.name}' depends on '${modelName}' whose required version ${version} is not loaded.`,
      );
    }
    throw notLoaded(config.name, modelName, errors.get(modelName));
  });
  const configs = members.map(({ model }) => model.config);
  checkMembers(config, configs);
  checkDecoupled(config, configs);
  return members;
}

/** The names of the models that an ensemble is composed of, each once. */
export function memberNames(config: ModelConfig): readonly string[] {
  const steps = config.ensembleScheduling?.step ?? [];
  return [...new Set(steps.map(({ modelName }) => modelName))];
}

function notLoaded(ensemble: string, member: string, error?: InferenceError): InferenceError {
  // INTERNAL: the load came to nothing before any version was tried.
  if (error?.code === StatusCode.Internal) {
    const text = `ensemble ${ensemble} contains models that are not available or ambiguous: ${member}`;
    return invalidArgument(text, { cause: error });
  }
  const because = error
    ? ` Model '${member}' loading failed with error: ${reasonsIn(error, member)}`
    : "";
  return invalidArgument(
    `ensemble '${ensemble}' depends on '${member}' which has no loaded version.${because}`,
    { cause: error },
  );
}

function reasonsIn({ message }: InferenceError, member: string): string {
  return message.replace(`load failed for model '${member}': `, "").trimEnd();
}
