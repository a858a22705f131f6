import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readLabels, type Labels } from "../../pool/labels.ts";
import { modelOutput, servedModel } from "../helpers/served-model.ts";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "labels-"));
  await mkdir(join(directory, "names"));
  await writeFile(join(directory, "names", "labels.txt"), "cat\r\n\nfish\n");
});
afterAll(() => rm(directory, { recursive: true }));

function labelsOf(labelFilename: string): Promise<Labels> {
  const output = [{ ...modelOutput("OUT", "TYPE_FP32", [3]), labelFilename }];
  return readLabels(servedModel("m", { output }).config, directory);
}

describe("readLabels", () => {
  it("reads one label a line", async () => {
    const labels = await labelsOf("names/labels.txt");
    expect(labels.get("OUT")).toEqual(["cat", "", "fish"]);
  });

  it("has nothing for an output without a label file", async () => {
    expect(await labelsOf("")).toEqual(new Map());
  });

  it("refuses a file that is not there", async () => {
    await expect(labelsOf("none.txt")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message:
        "label_filename of output 'OUT': file 'none.txt' does not exist in the model's directory",
    });
  });

  it.each(["/etc/hostname", "../secret", "names/../../secret"])(
    "refuses to read %s",
    async (name) => {
      await expect(labelsOf(name)).rejects.toMatchObject({ code: "INVALID_ARG" });
    },
  );
});
