import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { OverrideStore } from "../../repository/override-store.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const folders = (): readonly string[] => readdirSync(tmpdir());

// A temporary directory that no other test writes to.
const temporary = mkdtempSync(join(tmpdir(), "tidepool-test-"));
beforeAll(() => void vi.stubEnv("TMPDIR", temporary));
afterAll(() => rmSync(temporary, { recursive: true }));

describe("OverrideStore", () => {
  it("holds the files of a load request as a model", async () => {
    const files = new Map([
      ["1/model.onnx", bytes("one")],
      ["labels.txt", bytes("cat")],
    ]);
    const store = await OverrideStore.write("m", files);
    const model = await store.read("m");
    expect(model?.versions).toMatchObject([{ version: 1, files: ["model.onnx"] }]);
    if (!model) throw new Error("no model");
    const local = await store.fetch(model, 1);
    expect(readFileSync(join(local.versionDirectory, "model.onnx"), "utf8")).toBe("one");
    await store.release();
    await local.release();
  });

  it("removes its folder when the load is over and every version is released", async () => {
    const store = await OverrideStore.write("m", new Map([["1/model.onnx", bytes("one")]]));
    const model = await store.read("m");
    if (!model) throw new Error("no model");
    const first = await store.fetch(model, 1);
    const second = await store.fetch(model, 1);
    await first.release();
    await store.release();
    expect(existsSync(second.versionDirectory)).toBe(true);
    await second.release();
    expect(existsSync(join(first.modelDirectory, ".."))).toBe(false);
  });

  it.each([
    "../evil",
    "/etc/evil",
    "1/../../evil",
    "1//model.onnx",
    "",
    ".",
    "1/",
    "1\\evil",
    "1/.x",
    "1/a\0b",
    `1/${"x".repeat(256)}`,
    "d/".repeat(20) + "deep",
  ])("refuses to write %j", async (path) => {
    const before = folders();
    const writing = OverrideStore.write("m", new Map([[path, bytes("evil")]]));
    await expect(writing).rejects.toMatchObject({ code: "INVALID_ARG" });
    expect(folders()).toEqual(before);
  });

  it("refuses a model name that leaves the folder", async () => {
    const writing = OverrideStore.write("../m", new Map([["1/x", bytes("")]]));
    await expect(writing).rejects.toThrow("model name");
  });

  it("refuses more files than a model can have", async () => {
    const files = new Map(Array.from({ length: 1025 }, (_, i) => [`1/${i}`, bytes("")]));
    await expect(OverrideStore.write("m", files)).rejects.toThrow(
      "model file overrides: given 1025, expected at most 1024",
    );
  });

  it("refuses a file in the place of a folder, and leaves nothing behind", async () => {
    const before = folders();
    const files = new Map([
      ["1", bytes("file")],
      ["1/model.onnx", bytes("one")],
    ]);
    await expect(OverrideStore.write("m", files)).rejects.toThrow(
      "load parameter 'file:1/model.onnx': expected no other file in its place",
    );
    expect(folders()).toEqual(before);
  });
});
