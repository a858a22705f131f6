import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LocalStore } from "../../repository/local-store.ts";
import { ModelRepository } from "../../repository/model-repository.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

let first: ModelDirectory;
let second: ModelDirectory;
let repository: ModelRepository;
beforeEach(() => {
  [first, second] = [new ModelDirectory(), new ModelDirectory()];
  repository = new ModelRepository([new LocalStore(first.path), new LocalStore(second.path)]);
});
afterEach(() => {
  first.remove();
  second.remove();
});

const versionsOf = async (name: string): Promise<readonly number[]> =>
  (await repository.read(name)).versions.map(({ version }) => version);

describe("ModelRepository", () => {
  it("lists the models of all stores by name, and marks those that two of them have", async () => {
    first.model("b", { 1: "" });
    second.model("a", { 1: "" });
    first.model("twice", { 1: "" });
    second.model("twice", { 1: "" });
    expect(await repository.list()).toEqual([
      { name: "a", ambiguous: false },
      { name: "b", ambiguous: false },
      { name: "twice", ambiguous: true },
    ]);
    await expect(repository.read("twice")).rejects.toThrow(
      "not unique across all model repositories",
    );
  });

  it("finds a model in whichever store has it", async () => {
    first.model("a", { 1: "" });
    second.model("b", { 2: "" });
    expect(await versionsOf("a")).toEqual([1]);
    expect(await versionsOf("b")).toEqual([2]);
    await expect(repository.read("c")).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: "model not found in any model repository",
    });
  });

  it("chooses versions by the model's policy", async () => {
    const versions = { 1: "", 2: "", 10: "" };
    first.model("latest", versions);
    first.model("all", versions, "version_policy { all {} }");
    first.model("some", versions, "version_policy { specific { versions: [1, 10, 11] } }");
    first.model("none", versions, "version_policy { specific { versions: 7 } }");
    expect(await versionsOf("latest")).toEqual([10]);
    expect(await versionsOf("all")).toEqual([1, 2, 10]);
    expect(await versionsOf("some")).toEqual([1, 10]);
    expect(await versionsOf("none")).toEqual([]);
  });

  it("knows the backend of a model without a config from the version that sorts first as text", async () => {
    first.write("a/10/model.onnx", "");
    first.write("a/2/something-else", "");
    expect((await repository.read("a")).config).toMatchObject({
      name: "a",
      backend: "onnxruntime",
    });
  });

  it("tells what is wrong with a config", async () => {
    first.model("a", { 1: "" }, 'name: "b"');
    await expect(repository.read("a")).rejects.toThrow(
      "unexpected directory name 'a' for model 'b', directory name must equal model name",
    );
  });

  it("puts a config of the load request in place of the model's own", async () => {
    first.model("a", { 1: "", 2: "" }, "max_batch_size: 4");
    const config = '{"backend":"onnxruntime","max_batch_size":8,"version_policy":{"all":{}}}';
    const model = await repository.read("a", { config });
    expect(model.config.maxBatchSize).toBe(8);
    expect(model.versions).toHaveLength(2);
    await expect(repository.read("a", { config: "{bad" })).rejects.toThrow(
      "Invalid config override",
    );
  });

  it("puts files of the load request in place of the model's own, if a config comes with them", async () => {
    first.model("a", { 1: "own" });
    const files = new Map([["5/model.onnx", new TextEncoder().encode("theirs")]]);
    const model = await repository.read("a", { config: '{"backend":"onnxruntime"}', files });
    expect(model.versions.map(({ version }) => version)).toEqual([5]);
    await model.release();
    await expect(repository.read("a", { files })).rejects.toThrow(
      "'config' must be specified for model file override",
    );
  });

  it("gives a fingerprint for what cannot be read, too", async () => {
    first.model("good", { 1: "" });
    first.model("bad", { 1: "" }, "#".repeat(1024 * 1024));
    const fingerprints = await repository.fingerprints();
    expect(fingerprints.get("bad")).toMatch(/^error: config.pbtxt/);
    expect(fingerprints.get("good")).not.toMatch(/^error/);
  });
});
