import { existsSync } from "node:fs";
import path from "node:path";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { isJsonObject } from "../../../protocol/json-access.ts";
import type { FetchedVersion } from "../../fetched-version.ts";
import type { OpenedModel } from "../../opened-model.ts";
import { type GraphFinding, isGraphFinding } from "../../probe/graph-finding.ts";
import { checkSequenceTensors } from "../../scheduler/sequence-check.ts";
import { checkOnnx } from "../check-onnx.ts";
import { completeOnnx, type CompleteOptions } from "../complete-onnx.ts";
import type { Framework } from "./frameworks.ts";
import { configJson, startFirstProcess } from "./first-process.ts";
import { type LinkSettings, linkSettings } from "./link-settings.ts";
import type { PythonLink } from "./link.ts";
import type { PythonOptions } from "./options.ts";

/** Opens a model file that a framework runs in Python: what the file tells of its tensors completes the config. */
export async function openFramework(
  source: FetchedVersion,
  framework: Framework,
  { defaultMaxBatchSize, ...options }: PythonOptions & CompleteOptions,
): Promise<OpenedModel> {
  const settings = await settingsOf(source, framework, options);
  const { link, starter, release } = await startFirstProcess(settings, options);
  const finding = await describe(link, source.config);
  return {
    complete: async (config) =>
      finding ? completeOnnx(config, finding, { defaultMaxBatchSize }) : config,
    check: (config) => checkTensors(config, finding),
    starter,
    release,
  };
}

/** Of those formats that do not tell, undefined. */
async function describe(link: PythonLink, config: ModelConfig): Promise<GraphFinding | undefined> {
  const told = await link.describe(configJson(config));
  if (told === null) return undefined;
  const finding = { loadMilliseconds: 0, peakBytes: 0, ...(isJsonObject(told) && told) };
  if (isGraphFinding(finding)) return finding;
  await link.close();
  throw new InferenceError(
    StatusCode.Internal,
    `model '${config.name}': what its file says of its tensors is not valid`,
  );
}

function checkTensors(config: ModelConfig, finding: GraphFinding | undefined): void {
  for (const side of ["input", "output"] as const) {
    if (config[side].length > 0) continue;
    throw new InferenceError(
      StatusCode.InvalidArg,
      `model configuration must contain at least one ${side}, none were specified for model '${config.name}', whose ` +
        "file does not tell them",
    );
  }
  if (!finding) return;
  checkOnnx(config, finding);
  checkSequenceTensors(config, finding);
}

async function settingsOf(
  source: FetchedVersion,
  framework: Framework,
  options: PythonOptions,
): Promise<LinkSettings> {
  const { name, config, versionDirectory } = source;
  const fileName = config.defaultModelFilename;
  const file = path.resolve(versionDirectory, fileName);
  if (!file.startsWith(path.resolve(versionDirectory) + path.sep) || !existsSync(file)) {
    const text = `unable to find '${fileName}' for model '${name}'`;
    throw new InferenceError(StatusCode.NotFound, text);
  }
  return { ...(await linkSettings(source, fileName, options)), framework };
}
