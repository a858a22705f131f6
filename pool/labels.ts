import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { ModelConfig } from "../protocol/model-config.ts";

/** By output name: the label of each class, in the order of their indices; "" where a class has none. */
export type Labels = ReadonlyMap<string, readonly string[]>;

const maxLabelFileBytes = 16 * 1024 * 1024;

/** Reads the files that a config names as `label_filename`, one label a line; a file that is not there fails the load. */
export async function readLabels(config: ModelConfig, modelDirectory: string): Promise<Labels> {
  const labelled = config.output.filter((output) => output.labelFilename !== "");
  const labels = await Promise.all(
    labelled.map(async ({ name, labelFilename }) => {
      const text = await readLabelFile(name, labelFilename, modelDirectory);
      return [name, text.replace(/\r?\n$/, "").split(/\r?\n/)] as const;
    }),
  );
  return new Map(labels);
}

async function readLabelFile(
  output: string,
  fileName: string,
  modelDirectory: string,
): Promise<string> {
  const subject = `output '${output}': label file '${fileName}'`;
  if (!isBelow(fileName)) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `${subject} is outside of the model's directory, expected a path below it`,
    );
  }
  const path = join(modelDirectory, fileName);
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) {
    throw new InferenceError(
      StatusCode.Internal,
      `${subject} does not exist in the model's directory`,
    );
  }
  if (found.size > maxLabelFileBytes) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `${subject} has ${found.size} bytes, expected at most ${maxLabelFileBytes}`,
    );
  }
  return await readFile(path, "utf8");
}

function isBelow(fileName: string): boolean {
  return (
    !fileName.startsWith("/") && !fileName.includes("\0") && !fileName.split("/").includes("..")
  );
}
