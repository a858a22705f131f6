import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ModelCache, type WantedEntry } from "../../repository/model-cache.ts";
import { eventually } from "../helpers/eventually.ts";

let folder: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = path.join(mkdtempSync(path.join(tmpdir(), "tidepool-model-cache-")), "cache");
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(path.dirname(folder), { recursive: true, force: true });
});

const nameOf = (digit: string): string => digit.repeat(64);

/** An entry with one file of so many bytes, filled with its digit. */
function wanted(digit: string, bytes = 100): WantedEntry & { fills: number } {
  const entry = {
    name: nameOf(digit),
    totalBytes: bytes,
    fills: 0,
    async fill(to: string, report: (fetchedBytes: number) => void): Promise<void> {
      entry.fills++;
      writeFileSync(path.join(to, "file"), digit.repeat(bytes));
      report(bytes);
    },
  };
  return entry;
}

/** Digits of the entries that are there. */
function entries(): string {
  const names = readdirSync(folder).filter((name) => /^[0-9a-f]{64}$/u.test(name));
  return names.map((name) => name[0]).join("");
}

function leftovers(): readonly string[] {
  return readdirSync(folder).filter((name) => !/^[0-9a-f]{64}$/u.test(name));
}

async function use(cache: ModelCache, entry: WantedEntry): Promise<string> {
  const files = await cache.acquire(entry);
  await files.release();
  return files.folder;
}

interface CacheUser {
  readonly child: ChildProcess;
  readonly lines: string[];
}

function otherProcess(digit: string, bytes = 100, maxBytes = 1e9): CacheUser {
  const script = fileURLToPath(new URL("../fixtures/cache-user.ts", import.meta.url));
  const args = [script, folder, nameOf(digit), String(bytes), String(maxBytes)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  return { child, lines };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

describe("ModelCache", () => {
  it("brings what it does not have, once, also over restarts", async () => {
    const entry = wanted("a");
    const cache = new ModelCache(folder, 1e6);
    const files = await use(cache, entry);
    expect(readFileSync(path.join(files, "file"), "utf8")).toBe("a".repeat(100));
    await use(cache, entry);
    await use(new ModelCache(folder, 1e6), entry);
    expect(entry.fills).toBe(1);
    expect(cache.counters).toEqual({
      hits: 1,
      misses: 1,
      fetchedBytes: 100,
      evictions: 0,
      residentBytes: 100,
    });
    expect(leftovers()).toEqual([]);
  });

  it("lets many wait for one download, and tells all of them how far it is", async () => {
    const entry = wanted("a");
    const gate = Promise.withResolvers<void>();
    const slow: WantedEntry = {
      ...entry,
      async fill(to, report, signal) {
        report(40);
        await gate.promise;
        await entry.fill(to, report, signal);
      },
    };
    const cache = new ModelCache(folder, 1e6);
    const seen: string[] = [];
    const acquired = ["x", "y"].map((who) =>
      cache.acquire(slow, {
        onProgress: ({ fetchedBytes, totalBytes }) =>
          seen.push(`${who} ${fetchedBytes}/${totalBytes}`),
      }),
    );
    await eventually(() => expect(seen).toContain("y 40/100"));
    gate.resolve();
    for (const files of await Promise.all(acquired)) await files.release();
    expect(entry.fills).toBe(1);
    expect(seen).toEqual(["x 40/100", "y 40/100", "x 100/100", "y 100/100"]);
  });

  it("stops a download when the last who waited has gone, and no sooner", async () => {
    const cache = new ModelCache(folder, 1e6);
    let stopped = false;
    const started = Promise.withResolvers<void>();
    const endless: WantedEntry = {
      ...wanted("a"),
      async fill(_to, _report, signal) {
        started.resolve();
        await once(signal, "abort");
        stopped = true;
        signal.throwIfAborted();
      },
    };
    const [one, two] = [new AbortController(), new AbortController()];
    const first = cache.acquire(endless, { signal: one.signal });
    const second = cache.acquire(endless, { signal: two.signal });
    await started.promise;
    one.abort(new Error("one has gone"));
    await expect(first).rejects.toThrow("one has gone");
    expect(stopped).toBe(false);
    two.abort(new Error("two has gone"));
    await expect(second).rejects.toThrow("two has gone");
    await eventually(() => expect(stopped).toBe(true));
    const entry = wanted("a");
    await use(cache, entry);
    expect(entry.fills).toBe(1);
    expect(leftovers()).toEqual([]);
  });

  it("keeps nothing of a download that failed, and tries again", async () => {
    const cache = new ModelCache(folder, 1e6);
    const failing: WantedEntry = {
      ...wanted("a"),
      async fill(to) {
        writeFileSync(path.join(to, "file"), "half");
        throw new Error("broke off");
      },
    };
    await expect(cache.acquire(failing)).rejects.toThrow("broke off");
    expect(readdirSync(folder)).toEqual([]);
    await use(cache, wanted("a"));
    expect(entries()).toBe("a");
  });

  it("brings an entry again whose files are not as they were", async () => {
    const entry = wanted("a");
    const cache = new ModelCache(folder, 1e6);
    const files = await use(cache, entry);
    truncateSync(path.join(files, "file"), 50);
    await use(cache, entry);
    rmSync(path.join(files, "file"));
    await use(cache, entry);
    expect(entry.fills).toBe(3);
    expect(readFileSync(path.join(files, "file"), "utf8")).toBe("a".repeat(100));
  });

  it("does not trust files from before a restart of the system that had not reached the disk", async () => {
    const entry = wanted("a");
    const cache = new ModelCache(folder, 1e6);
    const restart = async (synced: boolean): Promise<void> => {
      const at = path.dirname(await use(cache, entry));
      await eventually(() => expect(existsSync(path.join(at, "synced"))).toBe(true));
      const manifest = path.join(at, "manifest.json");
      const text = readFileSync(manifest, "utf8");
      writeFileSync(manifest, JSON.stringify({ ...JSON.parse(text), boot: "another" }));
      if (!synced) rmSync(path.join(at, "synced"));
    };
    await restart(true);
    await use(cache, entry);
    expect(entry.fills).toBe(1);
    await restart(false);
    await use(cache, entry);
    expect(entry.fills).toBe(2);
  });

  it("removes what was used longest ago when it would grow over its bound", async () => {
    const cache = new ModelCache(folder, 250);
    for (const [digit, seconds] of [
      ["a", 1000],
      ["b", 2000],
    ] as const) {
      const files = await use(cache, wanted(digit));
      utimesSync(path.dirname(files), seconds, seconds);
    }
    await use(cache, wanted("a")); // now "b" is the older one
    await use(cache, wanted("c"));
    expect(entries()).toBe("ac");
    expect(cache.counters).toMatchObject({ evictions: 1, residentBytes: 200 });
  });

  it("keeps what is in use, and refuses what does not fit beside it", async () => {
    const cache = new ModelCache(folder, 250);
    const held = [await cache.acquire(wanted("a")), await cache.acquire(wanted("b"))];
    await expect(cache.acquire(wanted("c"))).rejects.toThrow(
      "model cache: given 100 bytes more, expected at most 250 bytes with what is in use; --model-cache-mb",
    );
    await held[0]?.release();
    await use(cache, wanted("c"));
    expect(entries()).toBe("bc");
    await held[1]?.release();
  });

  it("goes on when somebody has emptied its folder", async () => {
    const cache = new ModelCache(folder, 1e6);
    const held = await cache.acquire(wanted("a"));
    rmSync(folder, { recursive: true });
    await use(cache, wanted("b"));
    expect(entries()).toBe("b");
    await held.release();
  });

  it("refuses a folder that other users can write to", async () => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    await expect(new ModelCache(folder, 1e6).acquire(wanted("a"))).rejects.toThrow(
      "model cache: its folder belongs to, or can be written by, other users",
    );
  });

  it("tells no path when the folder cannot be made", async () => {
    writeFileSync(folder, "a file");
    await expect(new ModelCache(folder, 1e6).acquire(wanted("a"))).rejects.toThrow(
      /^model cache: cannot be written \(EEXIST\)$/u,
    );
  });
});

describe("ModelCache of several processes", () => {
  it("downloads once for all of them, who see how far it is", async () => {
    const users = [otherProcess("a", 1000), otherProcess("a", 1000), otherProcess("a", 1000)];
    await eventually(() => {
      for (const { lines } of users) expect(lines).toContain("has it");
    });
    expect(users.filter(({ lines }) => lines.includes("fills"))).toHaveLength(1);
    const informed = users.filter(({ lines }) => lines.some((line) => line.endsWith("bytes")));
    expect(informed).toHaveLength(3);
  });

  it("takes over from a process that was killed while it downloaded", async () => {
    const { child, lines } = otherProcess("a", 1000);
    await eventually(() => expect(lines).toContain("fills"));
    await kill(child);
    const entry = wanted("a");
    await use(new ModelCache(folder, 1e6), entry);
    expect(entry.fills).toBe(1);
    expect(entries()).toBe("a");
    expect(leftovers().filter((name) => !name.endsWith(".user"))).toEqual([]);
  });

  it("keeps what another process uses, until that one is gone", async () => {
    const { child, lines } = otherProcess("a");
    await eventually(() => expect(lines).toContain("has it"));
    const cache = new ModelCache(folder, 150);
    await expect(cache.acquire(wanted("b"))).rejects.toThrow("--model-cache-mb");
    expect(entries()).toBe("a");
    await kill(child);
    await use(cache, wanted("b"));
    expect(entries()).toBe("b");
    expect(leftovers()).toEqual([]);
  });
});
