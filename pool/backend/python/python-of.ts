import { realpath, stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { invalidArgument } from "../../../protocol/error.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { processEnvironment } from "./environment.ts";
import type { PythonOptions } from "./options.ts";
import { unpackedEnvironment } from "./packed-environment.ts";

const parameter = "EXECUTION_ENV_PATH";
const modelFolder = "$$TRITON_MODEL_DIRECTORY";

/** The interpreter of a model, and the environment that it starts in. */
export interface ModelPython {
  readonly python: string;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Which Python runs a model: that of the environment that its config names by EXECUTION_ENV_PATH, else the server's.
 * Throws INVALID_ARG for an environment that is none.
 */
export async function pythonOf(
  config: ModelConfig,
  modelDirectory: string,
  options: PythonOptions,
): Promise<ModelPython> {
  const instances = config.instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0);
  const cores = Math.max(1, Math.floor(availableParallelism() / Math.max(1, instances)));
  const environment = processEnvironment(process.env, cores);
  const named = config.parameters[parameter]?.stringValue ?? "";
  if (named === "") return { python: options.python, environment };
  const folder = await environmentFolder(config.name, named, modelDirectory, options);
  const programs = path.join(folder, "bin");
  return {
    python: path.join(programs, "python"),
    environment: {
      ...environment,
      PATH: [programs, environment["PATH"]].join(path.delimiter),
      VIRTUAL_ENV: folder,
      CONDA_PREFIX: folder,
    },
  };
}

async function environmentFolder(
  modelName: string,
  named: string,
  modelDirectory: string,
  options: PythonOptions,
): Promise<string> {
  const subject = `model '${modelName}': ${parameter}: given '${named}'`;
  const place = path.resolve(named.replace(modelFolder, modelDirectory));
  const found = await realpath(place).catch(() => undefined);
  if (found === undefined) throw invalidArgument(`${subject}, which does not exist`);
  if (named.includes(modelFolder) && !place.startsWith(path.resolve(modelDirectory) + path.sep))
    throw invalidArgument(`${subject}, expected a place below the model's folder`);
  const isFolder = (await stat(found)).isDirectory();
  const folder = isFolder ? found : await unpackedEnvironment(found, subject, options);
  const python = await stat(path.join(folder, "bin", "python")).catch(() => undefined);
  if (!python?.isFile())
    throw invalidArgument(`${subject}, expected an environment with bin/python in it`);
  return folder;
}
