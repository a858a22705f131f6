import { truncateSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { GraphCache } from "../../../pool/probe/graph-cache.ts";
import { testFolder } from "../../helpers/onnx-version.ts";

const write = async (folder: string): Promise<void> => {
  await writeFile(path.join(folder, "model.onnx"), "graph");
  await writeFile(path.join(folder, "weights.bin"), "weights");
};

describe("GraphCache", () => {
  it("gives back the folder of a graph that was saved", async () => {
    const graphs = new GraphCache(testFolder());
    expect(await graphs.find("a")).toBeUndefined();
    await graphs.save("a", write);
    const { folder = "" } = (await graphs.find("a")) ?? {};
    expect(await readdir(folder)).toEqual(expect.arrayContaining(["model.onnx", "weights.bin"]));
  });

  it("remembers that a graph cannot be saved", async () => {
    const graphs = new GraphCache(testFolder());
    await graphs.save("a", async () => {});
    expect(await graphs.find("a")).toMatchObject({ folder: undefined });
  });

  it("drops a graph whose files are cut off, and takes it again", async () => {
    const graphs = new GraphCache(testFolder());
    await graphs.save("a", write);
    truncateSync(path.join((await graphs.find("a"))?.folder ?? "", "weights.bin"), 3);
    expect(await graphs.find("a")).toBeUndefined();
    await graphs.save("a", write);
    expect((await graphs.find("a"))?.folder).toBeDefined();
  });

  it("keeps nothing when saving fails", async () => {
    const graphs = new GraphCache(testFolder());
    await graphs.save("a", () => Promise.reject(new Error("no")));
    expect(await graphs.find("a")).toBeUndefined();
  });
});
