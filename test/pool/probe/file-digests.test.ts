import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FileDigests } from "../../../pool/probe/file-digests.ts";
import { testFolder } from "../../helpers/onnx-version.ts";

const large = "tide".repeat(300_000);
const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const settled = 2_200;

function setUp(): { file: string; digests: FileDigests; memory: string } {
  const folder = testFolder();
  const file = path.join(folder, "model.onnx");
  writeFileSync(file, large);
  return { file, digests: new FileDigests(folder), memory: path.join(folder, "digests-1") };
}

describe("FileDigests", () => {
  it("gives a file's SHA-256", async () => {
    const { file, digests } = setUp();
    expect(await digests.of(file)).toBe(digest(large));
    writeFileSync(file, "small");
    expect(await digests.of(file)).toBe(digest("small"));
  });

  it("sees a change at once, even one of equal size that keeps the times", async () => {
    const { file, digests } = setUp();
    const then = new Date(2020, 1);
    utimesSync(file, then, then);
    await sleep(settled);
    await digests.of(file);
    const changed = large.replaceAll("t", "T");
    writeFileSync(file, changed);
    utimesSync(file, then, then);
    expect(await digests.of(file)).toBe(digest(changed));
    writeFileSync(`${file}.other`, large);
    utimesSync(`${file}.other`, then, then);
    renameSync(`${file}.other`, file);
    expect(await digests.of(file)).toBe(digest(large));
  });

  it("does not read a file again that has not changed for a while", async () => {
    const { file, digests, memory } = setUp();
    await digests.of(file);
    expect(() => readdirSync(memory)).toThrow("ENOENT");
    await sleep(settled);
    await digests.of(file);
    const entry = path.join(memory, readdirSync(memory)[0] ?? "");
    const planted = "0".repeat(64);
    writeFileSync(entry, readFileSync(entry, "utf8").replace(/[0-9a-f]{64}$/, planted));
    expect(await digests.of(file)).toBe(planted);
    writeFileSync(entry, "nonsense");
    expect(await digests.of(file)).toBe(digest(large));
  });
});
