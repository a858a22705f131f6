import { execFile } from "node:child_process";
import { appendFileSync, cpSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { python } from "../conformance/python.ts";
import { bringFramework, type FrameworkName } from "../helpers/framework-models.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

const examples = path.resolve(import.meta.dirname, "../../examples");
const run = promisify(execFile);

/** A copy of one of the examples' folders, with the files that its script makes; those models run in the framework's own Python. */
export async function frameworkExample(
  framework: FrameworkName,
  made: readonly string[],
): Promise<ModelDirectory> {
  const folder = path.join(examples, `${framework}-models`);
  const environment = await bringFramework(framework);
  const models = new ModelDirectory();
  cpSync(folder, models.path, { recursive: true });
  const script = path.join(folder, "make_models.py");
  await run(path.join(environment, "bin/python"), [script, models.path]);
  const parameter = `parameters { key: "EXECUTION_ENV_PATH" value { string_value: "${environment}" } }`;
  for (const model of made)
    appendFileSync(path.join(models.path, model, "config.pbtxt"), parameter);
  return models;
}

/** The files of so many pictures, whose classes are 0 to 4 again and again. */
export async function writePictures(folder: string, count: number): Promise<readonly string[]> {
  const script = path.join(import.meta.dirname, "pictures.py");
  const { stdout } = await run(python, [script, folder, String(count)]);
  return stdout.trimEnd().split("\n");
}
