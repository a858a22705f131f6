import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSideFile } from "../../pool/side-file.ts";

describe("readSideFile", () => {
  let modelDirectory = "";
  beforeAll(async () => {
    modelDirectory = await mkdtemp(join(tmpdir(), "side-file-"));
    await writeFile(join(modelDirectory, "four"), "four");
  });
  afterAll(() => rm(modelDirectory, { recursive: true }));

  it("reads a file of the most bytes, and refuses a larger one", async () => {
    const file = { subject: "it", path: "four", modelDirectory };
    expect((await readSideFile({ ...file, maxBytes: 4 })).toString()).toBe("four");
    await expect(readSideFile({ ...file, maxBytes: 3 })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "it: file 'four' has 4 bytes, expected at most 3",
    });
  });
});
