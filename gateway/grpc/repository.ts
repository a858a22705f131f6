import type { UntypedHandleCall } from "@grpc/grpc-js";
import type { LoadOptions, UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DataPlane } from "../data-plane.ts";
import { unaryMethod } from "./unary-method.ts";

/** A `ModelRepositoryParameter`: at most one of its values is there. */
interface RepositoryParameter {
  readonly boolParam?: boolean;
  readonly stringParam?: string;
  readonly bytesParam?: Uint8Array;
}

type RepositoryParameters = Readonly<Record<string, RepositoryParameter>>;

const filePrefix = "file:";

/** The methods that look into the model repository, and load and unload its models. */
export function repositoryMethods(
  plane: DataPlane,
  log: Logger,
): Readonly<Record<string, UntypedHandleCall>> {
  return {
    RepositoryIndex: unaryMethod(
      "RepositoryIndex",
      async ({ repositoryName, ready }) => {
        refuseRepositoryName(repositoryName);
        return { models: await plane.repositoryIndex(ready) };
      },
      log,
    ),
    RepositoryModelLoad: unaryMethod(
      "RepositoryModelLoad",
      async ({ repositoryName, modelName, parameters }) => {
        refuseRepositoryName(repositoryName);
        await plane.load(modelName, loadOptions(parameters));
        return {};
      },
      log,
    ),
    RepositoryModelUnload: unaryMethod(
      "RepositoryModelUnload",
      async ({ repositoryName, modelName, parameters }) => {
        refuseRepositoryName(repositoryName);
        await plane.unload(modelName, unloadOptions(parameters));
        return {};
      },
      log,
    ),
  };
}

function loadOptions(parameters: RepositoryParameters): LoadOptions {
  let config: string | undefined;
  const files = new Map<string, Uint8Array>();
  for (const [key, { stringParam, bytesParam }] of Object.entries(parameters)) {
    if (key === "config") {
      if (stringParam === undefined) throw wrongType(`load parameter '${key}'`, "string_param");
      config = stringParam;
    } else if (key.startsWith(filePrefix)) {
      if (bytesParam === undefined) throw wrongType(`load parameter '${key}'`, "bytes_param");
      files.set(key.slice(filePrefix.length), bytesParam);
    } else throw invalid(`unrecognized load parameter '${key}'.`);
  }
  return { ...(config !== undefined && { config }), ...(files.size > 0 && { files }) };
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
  if (name === "") return;
  throw new InferenceError(
    StatusCode.Unsupported,
    "'repository_name' specification is not supported",
  );
}

function wrongType(subject: string, expected: string): InferenceError {
  return invalid(`invalid value type for ${subject}, expected ${expected}.`);
}

function invalid(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, text);
}
