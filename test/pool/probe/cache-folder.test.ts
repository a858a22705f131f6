import { chmodSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { CacheFolder } from "../../../pool/probe/cache-folder.ts";
import { testFolder } from "../../helpers/onnx-version.ts";

const kilobyte = 1024;
const text = (bytes: number) => (to: string) => writeFile(to, "x".repeat(bytes));

/** Makes an entry look as if it had last been used so many minutes ago. */
function age(folder: string, name: string, minutes: number): void {
  const then = new Date(Date.now() - minutes * 60_000);
  utimesSync(path.join(folder, name), then, then);
}

describe("CacheFolder", () => {
  it("gives back what was put in, files and folders", async () => {
    const folder = testFolder();
    const cache = new CacheFolder(path.join(folder, "new"), kilobyte ** 2);
    expect(await cache.find("a")).toBeUndefined();
    expect(await cache.put("a", text(1))).toBe(true);
    const filled = await cache.put("b", async (to) => {
      await mkdir(to);
      await writeFile(path.join(to, "c"), "");
    });
    expect(filled).toBe(true);
    expect(await cache.find("a")).toBe(path.join(folder, "new", "a"));
    expect(readdirSync((await cache.find("b")) ?? "")).toEqual(["c"]);
  });

  it("keeps nothing of an entry that could not be finished", async () => {
    const folder = testFolder();
    const cache = new CacheFolder(folder, kilobyte ** 2);
    const put = cache.put("a", async (to) => {
      await mkdir(to);
      await writeFile(path.join(to, "half"), "");
      throw new Error("no more");
    });
    expect(await put).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("removes what was used longest ago when it grows over its bound, and nothing that is held", async () => {
    const folder = testFolder();
    const cache = new CacheFolder(folder, 100 * kilobyte);
    for (const [i, name] of ["held", "old", "used", "young"].entries()) {
      await cache.put(name, text(24 * kilobyte));
      age(folder, name, 100 - i);
    }
    const release = cache.hold("held");
    await cache.find("used");
    await cache.put("new", text(40 * kilobyte));
    expect(readdirSync(folder).toSorted()).toEqual(["held", "new", "used"]);
    release();
    age(folder, "used", 1);
    await cache.put("newer", text(40 * kilobyte));
    expect(readdirSync(folder).toSorted()).toEqual(["new", "newer"]);
  });

  it("clears away what a dead process left unfinished, and not what another one is making", async () => {
    const folder = testFolder();
    const cache = new CacheFolder(folder, kilobyte ** 2);
    for (const name of ["dead.unfinished", "alive.unfinished"]) mkdirSync(path.join(folder, name));
    age(folder, "dead.unfinished", 61);
    await cache.put("a", text(1));
    expect(readdirSync(folder).toSorted()).toEqual(["a", "alive.unfinished"]);
  });

  it("finds nothing that another user could have written", async () => {
    const folder = testFolder();
    const cache = new CacheFolder(folder, kilobyte ** 2);
    await cache.put("a", text(1));
    chmodSync(path.join(folder, "a"), 0o666);
    expect(await cache.find("a")).toBeUndefined();
    chmodSync(path.join(folder, "a"), 0o600);
    expect(await cache.find("a")).toBeDefined();
    chmodSync(folder, 0o777);
    expect(await cache.find("a")).toBeUndefined();
    expect(await cache.put("b", text(1))).toBe(false);
  });

  it("leaves it to the caller that a folder cannot be written to", async () => {
    const file = path.join(testFolder(), "file");
    writeFileSync(file, "");
    expect(await new CacheFolder(path.join(file, "below"), 1).put("a", text(1))).toBe(false);
  });
});
