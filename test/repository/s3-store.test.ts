import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { S3Stand } from "../helpers/s3-stand.ts";

let stand: S3Stand;
beforeAll(async () => {
  stand = await S3Stand.start();
});
afterAll(() => stand.stop());
beforeEach(async () => {
  stand.proxy.fault = () => undefined;
  await stand.server.remove("");
});

const big = new Uint8Array(20 * 2 ** 20).map((_, i) => (i * 31 + (i >> 12)) % 251);

function filesBelow(folder: string): readonly string[] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((file) => file.isFile())
    .map((file) => path.relative(folder, path.join(file.parentPath, file.name)))
    .toSorted();
}

describe("S3Store", () => {
  it("lists the folders below its prefix that may be models", async () => {
    await stand.server.putModel("team/a", { 1: "one" });
    await stand.server.putModel("team/b", { 1: "one" });
    await stand.server.put("team/readme.md", "no model");
    await stand.server.put("team/.hidden/1/model.onnx", "no model");
    await stand.server.putModel("elsewhere", { 1: "one" });
    const store = stand.newStore({ prefix: "team/" });
    expect(await store.list()).toEqual(["a", "b"]);
    expect(await store.read("elsewhere")).toBeUndefined();
    expect((await store.read("a"))?.versions.map(({ version }) => version)).toEqual([1]);
  });

  it("keeps what it has fetched for those who know it, whatever S3 has or says by then", async () => {
    await stand.server.putModel("a", { 1: "one" });
    const before = (await stand.read("a")).versions[0]?.fingerprint ?? "";
    expect(await stand.store.kept("a", 1, before)).toBeUndefined();
    await (await stand.fetch("a")).release();
    await stand.server.putModel("a", { 1: "another one" });
    const after = (await stand.read("a")).versions[0]?.fingerprint ?? "";
    stand.proxy.fault = () => ({ kind: "status", status: 403, code: "AccessDenied" });
    const kept = await stand.newStore({ cache: stand.newCache() }).kept("a", 1, before);
    const file = path.join(kept?.versionDirectory ?? "", "model.onnx");
    expect(readFileSync(file, "utf8")).toBe("one");
    await kept?.release();
    for (const [version, fingerprint] of [
      [1, after],
      [2, before],
    ] as const)
      expect(await stand.store.kept("a", version, fingerprint)).toBeUndefined();
    expect(await stand.newStore({ prefix: "other/" }).kept("a", 1, before)).toBeUndefined();
  });

  it("lists more models than one page of a listing holds", async () => {
    const folder = path.join(stand.server.directory, stand.server.bucket, "many");
    for (let i = 0; i < 1001; i++) {
      mkdirSync(path.join(folder, `m${i}`, "1"), { recursive: true });
      writeFileSync(path.join(folder, `m${i}`, "1", "x"), "");
    }
    expect(await stand.newStore({ prefix: "many/" }).list()).toHaveLength(1001);
    const before = await stand.read("many");
    // The last key of the second page.
    rmSync(path.join(folder, "m999/1/x"));
    expect((await stand.read("many")).fingerprint).not.toBe(before.fingerprint);
    rmSync(folder, { recursive: true });
  });

  it("has no model of a name without objects, nor of one that another begins with", async () => {
    await stand.server.putModel("abc", { 1: "one" });
    expect(await stand.store.read("ab")).toBeUndefined();
    await expect(stand.store.read("../abc")).rejects.toThrow("model name: given");
  });

  it("changes the fingerprints of those whose objects have changed", async () => {
    await stand.server.putModel("a", { 1: "one", 2: "two" });
    const before = await stand.read("a");
    expect(await stand.read("a")).toEqual(before);
    await stand.server.put("a/2/model.onnx", "TWO");
    const after = await stand.read("a");
    expect(after.fingerprint).not.toBe(before.fingerprint);
    expect(after.versions[0]).toEqual(before.versions[0]);
    expect(after.versions[1]?.fingerprint).not.toBe(before.versions[1]?.fingerprint);
    await stand.server.put("a/labels.txt", "shared by both");
    expect((await stand.read("a")).versions[0]?.fingerprint).not.toBe(
      after.versions[0]?.fingerprint,
    );
  });

  it("reads the config, and asks for it again only when it has changed", async () => {
    await stand.server.putModel("a", { 1: "one" }, "# first");
    expect((await stand.read("a")).config).toMatchObject({
      fileName: "config.pbtxt",
      text: 'backend: "onnxruntime"\n# first',
    });
    const requests = (): number =>
      stand.proxy.requests.filter(({ url }) => url.includes("config.pbtxt")).length;
    const before = requests();
    await stand.read("a");
    expect(requests()).toBe(before);
    await stand.server.putModel("a", {}, "# second");
    expect((await stand.read("a")).config?.text).toContain("# second");
    expect(requests()).toBe(before + 1);
  });

  it("prefers the chosen config of configs/, and refuses one of more than a mebibyte", async () => {
    await stand.server.putModel("a", { 1: "one" });
    await stand.server.put("a/configs/small.pbtxt", "# small");
    const store = stand.newStore({ configName: "small" });
    expect((await store.read("a"))?.config).toMatchObject({ fileName: "configs/small.pbtxt" });
    await stand.server.put("a/configs/small.pbtxt", "#".repeat(2 ** 20 + 1));
    await expect(store.read("a")).rejects.toThrow("configs/small.pbtxt: given 1048577 bytes");
  });

  it("brings the files of one version and those that all share, and nothing else", async () => {
    await stand.server.putModel("a", { 1: "one", 2: "two" });
    await stand.server.put("a/labels.txt", "cat\ndog");
    await stand.server.put("a/warmup/raw", "data");
    await stand.server.put("a/2/data/weights.bin", "");
    await stand.server.put("a/2/empty/", "");
    const model = await stand.read("a");
    expect(model.versions[1]?.files).toEqual(["data", "empty", "model.onnx"]);
    const local = await stand.store.fetch(model, 2);
    expect(filesBelow(local.modelDirectory)).toEqual([
      "2/data/weights.bin",
      "2/model.onnx",
      "config.pbtxt",
      "labels.txt",
      "warmup/raw",
    ]);
    expect(readFileSync(path.join(local.versionDirectory, "model.onnx"), "utf8")).toBe("two");
    await local.release();
  });

  it("brings a large file in parts side by side, and says how far it is", async () => {
    await stand.server.put("large/1/model.onnx", big);
    const model = await stand.read("large");
    const seen: number[] = [];
    const before = stand.proxy.requests.length;
    const local = await stand.store.fetch(model, 1, {
      onProgress: ({ fetchedBytes, totalBytes }) => {
        expect(totalBytes).toBe(big.length);
        seen.push(fetchedBytes);
      },
    });
    const ranges = stand.proxy.requests.slice(before).flatMap(({ range }) => range ?? []);
    expect(ranges.toSorted()).toEqual([
      "bytes=0-8388607",
      "bytes=16777216-20971519",
      "bytes=8388608-16777215",
    ]);
    expect(stand.proxy.mostAtOnce).toBeGreaterThan(1);
    expect(seen.length).toBeGreaterThan(10);
    expect(seen.at(-1)).toBe(big.length);
    const file = readFileSync(path.join(local.versionDirectory, "model.onnx"));
    expect(file.equals(big)).toBe(true);
    await local.release();
  });

  it("brings a file that was uploaded in parts, whose ETag is no MD5", async () => {
    await stand.server.putInParts("parts/1/model.onnx", big, 6 * 2 ** 20);
    const local = await stand.fetch("parts");
    const file = readFileSync(path.join(local.versionDirectory, "model.onnx"));
    expect(file.equals(big)).toBe(true);
    await local.release();
  });

  it("brings the same files once, and others under the same name again", async () => {
    await stand.server.putModel("once", { 1: "first" });
    const { hits, misses } = stand.cache.counters;
    const one = await stand.fetch("once");
    const two = await stand.fetch("once");
    expect(two.modelDirectory).toBe(one.modelDirectory);
    await stand.server.putModel("once", { 1: "second" });
    const three = await stand.fetch("once");
    expect(three.modelDirectory).not.toBe(one.modelDirectory);
    expect(stand.cache.counters).toMatchObject({ hits: hits + 1, misses: misses + 2 });
    await Promise.all([one, two, three].map((local) => local.release()));
  });

  it("tells S3's word for a failure, and no key, host or path", async () => {
    stand.proxy.fault = () => ({ kind: "status", status: 403, code: "AccessDenied" });
    await expect(stand.store.list()).rejects.toThrow(
      /^model repository: cannot be read from S3 \(AccessDenied\)$/u,
    );
    await expect(stand.store.read("a")).rejects.toThrow(
      /^model 'a': cannot be read from S3 \(AccessDenied\)$/u,
    );
  });
});
