import type { FetchedVersion } from "../../fetched-version.ts";
import type { PythonOptions } from "./options.ts";
import { pythonOf } from "./python-of.ts";

/** Which model a process runs, and with what. */
export interface LinkSettings {
  readonly modelName: string;
  readonly modelVersion: string;
  /** With the folder of the version in it. */
  readonly modelDirectory: string;
  readonly versionDirectory: string;
  readonly fileName: string;
  /** The module of the runner that runs the file; without one the file is the model's own module. */
  readonly framework?: string;
  readonly python: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** What an instance says of itself to its model. */
export interface InstanceIdentity {
  /** As errors and logs name it. */
  readonly name: string;
  readonly kind: "CPU" | "GPU" | "MODEL";
  readonly deviceId: number;
  /** JSON, as a model reads it. */
  readonly config: string;
}

/** @param fileName of the model, below the folder of the version; that it is there, others have seen */
export async function linkSettings(
  { name, version, config, modelDirectory, versionDirectory }: FetchedVersion,
  fileName: string,
  options: PythonOptions,
): Promise<LinkSettings> {
  const { python, environment } = await pythonOf(config, modelDirectory, options);
  return {
    modelName: name,
    modelVersion: version,
    modelDirectory,
    versionDirectory,
    fileName,
    python,
    environment,
  };
}
