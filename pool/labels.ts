import type { ModelConfig } from "../protocol/model-config.ts";
import { readSideFile } from "./side-file.ts";

/** By output name: the label of each class, in the order of their indices; "" where a class has none. */
export type Labels = ReadonlyMap<string, readonly string[]>;

const maxLabelFileBytes = 16 * 1024 * 1024;

/** Reads the files that a config names as `label_filename`, one label a line; a file that is not there fails the load. */
export async function readLabels(config: ModelConfig, modelDirectory: string): Promise<Labels> {
  const labelled = config.output.filter((output) => output.labelFilename !== "");
  const labels = await Promise.all(
    labelled.map(async ({ name, labelFilename }) => {
      const file = await readSideFile({
        subject: `label_filename of output '${name}'`,
        path: labelFilename,
        modelDirectory,
        maxBytes: maxLabelFileBytes,
      });
      const text = file.toString("utf8");
      return [name, text.replace(/\r?\n$/, "").split(/\r?\n/)] as const;
    }),
  );
  return new Map(labels);
}
