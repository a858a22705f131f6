import path from "node:path";
import { StatusCode, InferenceError } from "../../../protocol/error.ts";
import { parseConfigJson } from "../../../repository/config-json.ts";
import type { FetchedVersion } from "../../fetched-version.ts";
import type { OpenedModel } from "../../opened-model.ts";
import { isFile } from "../model-file.ts";
import { configJson, startFirstProcess } from "./first-process.ts";
import { type LinkSettings, linkSettings } from "./link-settings.ts";
import type { PythonOptions } from "./options.ts";

/** Opens a Python model: a process imports it and completes the config. */
export async function openPython(
  source: FetchedVersion,
  options: PythonOptions,
): Promise<OpenedModel> {
  const settings = await settingsOf(source, options);
  const { link, starter, release } = await startFirstProcess(settings, options);
  return {
    async complete(config) {
      const completed = await link.complete(configJson(config));
      return completed === undefined ? config : parseConfigJson(completed);
    },
    // Only the model knows which tensors it reads and writes.
    check: () => {},
    starter,
    release,
  };
}

async function settingsOf(source: FetchedVersion, options: PythonOptions): Promise<LinkSettings> {
  const { name, config, versionDirectory } = source;
  const fileName = config.defaultModelFilename || "model.py";
  if (path.basename(fileName) !== fileName || !fileName.endsWith(".py"))
    throw new InferenceError(
      StatusCode.InvalidArg,
      `Model name must end with '.py'. Model name is "${fileName}".`,
    );
  if (!isFile(path.join(versionDirectory, fileName)))
    throw new InferenceError(
      StatusCode.NotFound,
      `unable to find '${fileName}' for model '${name}'`,
    );
  return linkSettings(source, fileName, options);
}
