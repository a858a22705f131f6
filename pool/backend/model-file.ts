import { statSync } from "node:fs";
import path from "node:path";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";

const defaultFilename = "model.onnx";

/**
 * The ONNX file of a version: `default_model_filename`, or a `model.onnx` inside it where that is a folder, as models
 * with external data have it. Throws NOT_FOUND without telling where it looked.
 */
export function onnxFile(config: ModelConfig, versionDirectory: string): string {
  const filename = config.defaultModelFilename || defaultFilename;
  const file = path.resolve(versionDirectory, filename);
  if (!file.startsWith(path.resolve(versionDirectory) + path.sep)) throw missing(config, filename);
  const nested = path.join(file, defaultFilename);
  if (isFile(file)) return file;
  if (isFile(nested)) return nested;
  throw missing(config, filename);
}

/** True for a file that is there. */
export function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

function missing(config: ModelConfig, filename: string): InferenceError {
  return new InferenceError(
    StatusCode.NotFound,
    `unable to find '${filename}' for model '${config.name}'`,
  );
}
