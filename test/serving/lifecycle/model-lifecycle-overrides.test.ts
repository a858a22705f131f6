import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { InferenceError } from "../../../protocol/error.ts";
import { eventually } from "../../helpers/eventually.ts";
import { LifecycleStand } from "../../helpers/lifecycle-stand.ts";

const config = (maxBatchSize: number): string =>
  JSON.stringify({ backend: "onnxruntime", max_batch_size: maxBatchSize });
const files = (path: string, text: string): ReadonlyMap<string, Uint8Array> =>
  new Map([[path, new TextEncoder().encode(text)]]);

// A temporary directory that only the load under test writes to.
const temporary = mkdtempSync(join(tmpdir(), "tidepool-test-"));
afterAll(() => rmSync(temporary, { recursive: true }));

let stand: LifecycleStand;
beforeEach(async () => {
  stand = new LifecycleStand();
  vi.stubEnv("TMPDIR", temporary);
  stand.directory.model("m", { 1: "own" });
  await stand.lifecycle.load("m", {});
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await stand.close();
});

const maxBatchSize = (): number => stand.lifecycle.find("m", "").model.config.maxBatchSize;

describe("ModelLifecycle with overrides", () => {
  it("loads with another config every time one is given, and keeps it until the files change", async () => {
    await stand.lifecycle.load("m", { config: config(4) });
    expect(maxBatchSize()).toBe(4);
    await stand.lifecycle.load("m", { config: config(8) });
    expect(maxBatchSize()).toBe(8);
    await stand.lifecycle.load("m", {});
    expect(maxBatchSize()).toBe(8);
    stand.directory.write("m/1/model.onnx", "changed");
    await stand.lifecycle.load("m", {});
    expect(maxBatchSize()).toBe(0);
  });

  it("serves files of the request, and the repository's own after the next plain load", async () => {
    const override = { config: config(0), files: files("5/model.onnx", "theirs") };
    await stand.lifecycle.load("m", override);
    const overridden = stand.last();
    expect(stand.answer("m")).toBe("5: theirs");
    expect(stand.answer("m", "1")).toContain("not at ready state");
    expect(await stand.versions.hasFiles(overridden)).toBe(true);
    await stand.lifecycle.load("m", {});
    expect(stand.answer("m")).toBe("1: own");
    await eventually(async () => expect(await stand.versions.hasFiles(overridden)).toBe(false));
  });

  it("serves a model that is in no repository, and forgets it when it is unloaded", async () => {
    const override = { config: config(0), files: files("1/model.onnx", "from afar") };
    await stand.lifecycle.load("guest", override);
    expect(stand.answer("guest")).toBe("1: from afar");
    expect(await stand.index("guest")).toEqual([{ name: "guest", version: "1", state: "READY" }]);
    await stand.lifecycle.unload("guest", { unloadDependents: false });
    await eventually(() => expect(stand.answer("guest")).toContain("'guest' is not found"));
    expect(await stand.index("guest")).toEqual([]);
    expect(await stand.versions.hasFiles(stand.last())).toBe(false);
  });

  it.each([
    ["no config", { files: files("1/model.onnx", "x") }, "'config' must be specified"],
    ["a config that is no JSON", { config: "{bad" }, "Invalid config override"],
    [
      "a path that leaves the model",
      { config: config(0), files: files("../x", "x") },
      "'file:../x'",
    ],
    ["no version", { config: config(0), files: files("model.onnx", "x") }, "at least one version"],
    [
      "a broken model",
      { config: config(0), files: files("2/model.onnx", "broken") },
      "m is broken",
    ],
  ])("refuses %s and goes on as before", async (_, options, text) => {
    await expect(stand.lifecycle.load("m", options)).rejects.toThrow(text);
    expect(stand.answer("m")).toBe("1: own");
    await expect(stand.lifecycle.load("guest", options)).rejects.toBeInstanceOf(InferenceError);
    expect(await stand.index("guest")).toEqual([]);
    expect(readdirSync(tmpdir())).toEqual([]);
  });
});
