import { rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileDigest, readModelFolder } from "../../../cli/push/model-folder.ts";
import { ModelDirectory } from "../../helpers/model-directory.ts";
import { sha256 } from "../../helpers/upload-parts.ts";

/** Files as they are to be pushed; a leading "/" stands for one of all versions. */
async function read(folder: string, version?: number): Promise<readonly string[]> {
  const { files } = await readModelFolder(folder, version);
  return files.map(({ name, shared }) => `${shared ? "/" : ""}${name}`);
}

describe("readModelFolder", () => {
  let local: ModelDirectory;
  beforeEach(() => {
    local = new ModelDirectory();
  });
  afterEach(() => local.remove());

  function write(...files: readonly string[]): string {
    for (const file of files) local.write(`m/${file}`, file);
    return path.join(local.path, "m");
  }

  it("takes the only version of a model's folder, with what lies beside it", async () => {
    const folder = write("config.pbtxt", "labels.txt", "configs/a.pbtxt", "1/model.onnx", "1/d/w");
    expect(await read(folder, 7)).toEqual([
      "d/w",
      "model.onnx",
      "/config.pbtxt",
      "/configs/a.pbtxt",
      "/labels.txt",
    ]);
    expect((await readModelFolder(`${folder}/`, undefined)).name).toBe("m");
  });

  it("takes the version that is asked for of several, and asks where it cannot know", async () => {
    const folder = write("config.pbtxt", "2/model.onnx", "10/model.onnx", "10/b");
    expect(await read(folder, 10)).toEqual(["b", "model.onnx", "/config.pbtxt"]);
    for (const [version, given] of [
      [undefined, "nothing"],
      [3, "3"],
    ] as const)
      await expect(read(folder, version)).rejects.toThrow(
        `--version: given ${given}, expected one of ${folder}: 2, 10`,
      );
  });

  it("takes a folder without versions for one version's files and its config", async () => {
    const folder = write("config.pbtxt", "model.py", "data/config.pbtxt", "0/x");
    expect(await read(folder)).toEqual(["0/x", "/config.pbtxt", "data/config.pbtxt", "model.py"]);
  });

  it("leaves hidden files out, and tells which", async () => {
    const folder = write("1/model.onnx", ".git/config", "1/.DS_Store");
    const { files, skipped } = await readModelFolder(folder, undefined);
    expect(files.map(({ name }) => name)).toEqual(["model.onnx"]);
    expect(skipped).toEqual([".git/config", "1/.DS_Store"]);
  });

  it("follows links that stay in the folder, and refuses others", async () => {
    const folder = write("1/model.onnx", "weights/w");
    local.write("m-other/secret", "secret");
    symlinkSync("../weights", path.join(folder, "1/d"));
    symlinkSync("../weights/w", path.join(folder, "1/w"));
    const files = ["d/w", "model.onnx", "w", "/weights/w"];
    expect(await read(folder)).toEqual(files);
    symlinkSync(folder, path.join(local.path, "link"));
    expect(await read(path.join(local.path, "link"))).toEqual(files);
    const link = path.join(folder, "1/x");
    const outside = ["../../m-other/secret", "../..", "/etc/hostname", "../../m-other", "nowhere"];
    for (const target of outside) {
      symlinkSync(target, link);
      await expect(read(folder)).rejects.toThrow(`${link} is a link that leads out of ${folder}`);
      rmSync(link);
    }
    symlinkSync("/etc", path.join(folder, ".hidden"));
    const { skipped } = await readModelFolder(folder, undefined);
    expect(skipped).toEqual([".hidden"]);
  });

  it("refuses what is no folder, and one without files", async () => {
    const nowhere = path.join(local.path, "nowhere");
    await expect(read(nowhere)).rejects.toThrow(`given ${nowhere}, which cannot be read`);
    await expect(read(local.path)).rejects.toThrow("which has no files");
  });

  it("tells how far it is with a digest", async () => {
    const content = Buffer.alloc(3_000_000, "x");
    local.write("large", content);
    let come = 0;
    const digest = await fileDigest(path.join(local.path, "large"), (bytes) => (come += bytes));
    expect([digest, come]).toEqual([sha256(content), 3_000_000]);
  });
});
