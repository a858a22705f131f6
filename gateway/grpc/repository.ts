import { seenBy } from "../../auth/caller.ts";
import type { UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { DataPlane } from "../data-plane.ts";
import {
  loadDetails,
  type LoadParameter,
  loadOptions,
  repositoryNamed,
} from "../load-parameters.ts";
import type { GrpcOptions } from "./options.ts";
import type { GrpcMethods } from "./services.ts";
import { unaryMethod } from "./unary-method.ts";

/** A `ModelRepositoryParameter`: at most one of its values is there. */
interface RepositoryParameter {
  readonly boolParam?: boolean;
  readonly stringParam?: string;
  readonly bytesParam?: Uint8Array;
}

type RepositoryParameters = Readonly<Record<string, RepositoryParameter>>;

/** The methods that look into the model repository, and load and unload its models. */
export function repositoryMethods(plane: DataPlane, options: GrpcOptions): GrpcMethods {
  return {
    RepositoryIndex: unaryMethod(
      "RepositoryIndex",
      async ({ repositoryName, ready }, caller) => {
        refuseRepositoryName(repositoryName);
        return { models: seenBy(caller, await plane.repositoryIndex(ready)) };
      },
      options,
    ),
    RepositoryModelLoad: unaryMethod(
      "RepositoryModelLoad",
      async ({ repositoryName, modelName, parameters }, _caller, change) => {
        refuseRepositoryName(repositoryName);
        const brought = loadOptions(loadParameters(parameters));
        change?.tell(loadDetails(brought));
        await plane.load(modelName, brought);
        return {};
      },
      options,
    ),
    RepositoryModelUnload: unaryMethod(
      "RepositoryModelUnload",
      async ({ repositoryName, modelName, parameters }, _caller, change) => {
        refuseRepositoryName(repositoryName);
        const how = unloadOptions(parameters);
        change?.tell({ ...how });
        await plane.unload(modelName, how);
        return {};
      },
      options,
    ),
  };
}

function loadParameters(
  parameters: RepositoryParameters,
): readonly (readonly [string, LoadParameter])[] {
  return Object.entries(parameters).map(([key, { stringParam, bytesParam }]) => {
    const wrong = (expected: string) => wrongType(`load parameter '${key}'`, expected);
    return [
      key,
      {
        text: () => present(stringParam, () => wrong("string_param")),
        bytes: () => present(bytesParam, () => wrong("bytes_param")),
      },
    ];
  });
}

function present<Value>(value: Value | undefined, missing: () => InferenceError): Value {
  if (value === undefined) throw missing();
  return value;
}

/** The reference ignores what it does not know here. */
function unloadOptions(parameters: RepositoryParameters): UnloadOptions {
  const given = parameters["unload_dependents"];
  if (!given) return { unloadDependents: false };
  if (given.boolParam === undefined) {
    throw wrongType("'unload_dependents' parameter", "bool_param");
  }
  return { unloadDependents: given.boolParam };
}

function refuseRepositoryName(name: string): void {
  if (name !== "") throw repositoryNamed();
}

function wrongType(subject: string, expected: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `invalid value type for ${subject}, expected ${expected}.`,
  );
}
