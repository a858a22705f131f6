import { mkdirSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LocalStore } from "../../repository/local-store.ts";
import type { StoredModel } from "../../repository/model-store.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

let directory: ModelDirectory;
beforeEach(() => {
  directory = new ModelDirectory();
});
afterEach(() => directory.remove());

async function read(name: string, configName?: string): Promise<StoredModel> {
  const model = await new LocalStore(directory.path, configName).read(name);
  if (!model) throw new Error(`no model '${name}'`);
  return model;
}

describe("LocalStore", () => {
  it("lists folders and links to folders, and nothing else", async () => {
    directory.model("a", { 1: "one" });
    directory.write("plain-file", "");
    directory.write(".hidden/1/model.onnx", "");
    directory.write("..elsewhere/1/model.onnx", "");
    symlinkSync(join(directory.path, "a"), join(directory.path, "link"));
    symlinkSync(join(directory.path, "nowhere"), join(directory.path, "dangling"));
    expect((await new LocalStore(directory.path).list()).toSorted()).toEqual(["a", "link"]);
  });

  it("rejects when its directory is not there, without telling where it is", async () => {
    directory.remove();
    const listing = new LocalStore(directory.path).list();
    await expect(listing).rejects.toThrow("model repository: cannot be read (ENOENT)");
  });

  it("has no model of a name without a folder", async () => {
    directory.write("plain-file", "");
    const store = new LocalStore(directory.path);
    expect(await store.read("nothing")).toBeUndefined();
    expect(await store.read("plain-file")).toBeUndefined();
  });

  it.each(["..", "a/../a", ".", "a\0", ""])("refuses to look for %j", async (name) => {
    directory.model("a", { 1: "one" });
    await expect(new LocalStore(directory.path).read(name)).rejects.toThrow("model name: given");
  });

  it("takes numbers without a leading zero for versions", async () => {
    directory.model("a", { 1: "", 2: "", 10: "" });
    for (const other of ["01", "0", "foo", "1.5", "-3", "warmup", "configs", "99999999999999999"])
      directory.write(`a/${other}/model.onnx`, "");
    directory.write("a/7", "a file with the name of a version");
    expect((await read("a")).versions.map(({ version }) => version)).toEqual([1, 2, 10]);
  });

  it("lists what lies directly in a version's folder", async () => {
    directory.write("a/1/model.onnx", "");
    directory.write("a/1/data/weights.bin", "");
    expect((await read("a")).versions[0]?.files).toEqual(["data", "model.onnx"]);
  });

  it("reads the config, and the chosen one of configs/ where there is one", async () => {
    directory.model("a", { 1: "" }, "# plain");
    directory.model("b", { 1: "" }, "# plain");
    directory.write("b/configs/small.pbtxt", "# small");
    directory.write("c/1/model.onnx", "");
    expect((await read("b")).config?.text).toContain("# plain");
    expect((await read("a", "small")).config?.fileName).toBe("config.pbtxt");
    expect((await read("b", "small")).config).toEqual({
      fileName: "configs/small.pbtxt",
      text: "# small",
    });
    expect((await read("c")).config).toBeUndefined();
  });

  it("refuses a config name that leaves the folder, and a config of more than a mebibyte", async () => {
    expect(() => new LocalStore(directory.path, "../../x")).toThrow("model config name");
    directory.model("a", { 1: "" }, "#".repeat(1024 * 1024));
    await expect(read("a")).rejects.toThrow("config.pbtxt: given 1048599 bytes");
  });

  it("changes the fingerprints of those whose files have changed", async () => {
    directory.model("a", { 1: "one", 2: "two" });
    const before = await read("a");
    expect(await read("a")).toEqual(before);

    directory.write("a/2/more/weights.bin", "new");
    const after = await read("a");
    expect(after.fingerprint).not.toBe(before.fingerprint);
    expect(after.versions[0]).toEqual(before.versions[0]);
    expect(after.versions[1]?.fingerprint).not.toBe(before.versions[1]?.fingerprint);

    directory.write("a/labels.txt", "shared by both");
    const shared = await read("a");
    expect(shared.versions[0]?.fingerprint).not.toBe(after.versions[0]?.fingerprint);
  });

  it("sees a file with another time or size, an empty version, and a file that is gone", async () => {
    directory.model("a", { 1: "one" });
    const seen = new Set<string>();
    const look = async (): Promise<void> => void seen.add((await read("a")).fingerprint);
    await look();
    utimesSync(join(directory.path, "a/1/model.onnx"), 1000, 1000);
    await look();
    directory.write("a/1/model.onnx", "longer");
    utimesSync(join(directory.path, "a/1/model.onnx"), 1000, 1000);
    await look();
    mkdirSync(join(directory.path, "a/2"));
    await look();
    rmSync(join(directory.path, "a/1/model.onnx"));
    await look();
    expect(seen.size).toBe(5);
  });

  it("gives up on folders that link back to themselves", async () => {
    directory.model("a", { 1: "one" });
    symlinkSync(join(directory.path, "a"), join(directory.path, "a/1/loop"));
    await expect(read("a")).rejects.toThrow("at most 16 deep");
  });

  it("gives the folders of a version", async () => {
    directory.model("a", { 3: "three" });
    const local = await new LocalStore(directory.path).fetch(await read("a"), 3);
    expect(local.modelDirectory).toBe(join(directory.path, "a"));
    expect(local.versionDirectory).toBe(join(directory.path, "a/3"));
  });
});
