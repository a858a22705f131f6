import { utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LocalStore } from "../../repository/local-store.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

describe("LocalStore.digest", () => {
  const directory = new ModelDirectory();
  const store = new LocalStore(directory.path);
  afterEach(() => directory.remove("m"));

  function write(): void {
    directory.model("m", { 1: "one", 2: "two" }, "max_batch_size: 1");
    directory.write("m/labels.txt", "a");
  }

  it("tells files apart whose times and sizes are the same", async () => {
    write();
    const path = join(directory.path, "m/1/model.onnx");
    utimesSync(path, 1, 1);
    const [before, stamp] = [await store.digest("m", 1), await fingerprint()];
    directory.write("m/1/model.onnx", "eno");
    utimesSync(path, 1, 1);
    expect(await fingerprint()).toBe(stamp);
    expect(await store.digest("m", 1)).not.toBe(before);
  });

  it("is the same wherever the same files are", async () => {
    write();
    const other = new ModelDirectory();
    other.model("m", { 1: "one", 3: "three" }, "max_batch_size: 1");
    other.write("m/labels.txt", "a");
    expect(await new LocalStore(other.path).digest("m", 1)).toBe(await store.digest("m", 1));
    other.remove();
  });

  it("changes with what all versions share, and not with another version", async () => {
    write();
    const before = await store.digest("m", 1);
    directory.write("m/2/model.onnx", "other");
    expect(await store.digest("m", 1)).toBe(before);
    directory.write("m/labels.txt", "b");
    expect(await store.digest("m", 1)).not.toBe(before);
  });

  async function fingerprint(): Promise<string | undefined> {
    return (await store.read("m"))?.versions[0]?.fingerprint;
  }
});
