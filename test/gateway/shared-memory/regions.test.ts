import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SharedMemoryRegions } from "../../../gateway/shared-memory/regions.ts";
import { MemoryObject } from "../../helpers/memory-object.ts";

let memory: MemoryObject;
let regions: SharedMemoryRegions;

beforeEach(() => {
  memory = new MemoryObject(256);
  regions = new SharedMemoryRegions(true);
});
afterEach(() => {
  regions.unregister("");
  memory.remove();
});

function register(name: string, more: object = {}): void {
  regions.register({ name, key: memory.key, offset: 0, byteSize: 64, ...more });
}

/** How often this process has the object open, beside the test itself. */
function openCount(): number {
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  return targets.filter((target) => target.startsWith(memory.path)).length - 1;
}

describe("SharedMemoryRegions", () => {
  it("lists what is registered, all or one by its name", () => {
    register("a", { offset: 64 });
    register("b");
    const a = { name: "a", key: memory.key, offset: 64, byteSize: 64 };
    expect(regions.status("")).toEqual([a, { ...a, name: "b", offset: 0 }]);
    expect(regions.status("a")).toEqual([a]);
    expect(() => regions.status("c")).toThrow("Unable to find system shared memory region: 'c'");
  });

  it("takes a name once", () => {
    register("a");
    expect(() => register("a", { key: "/nowhere" })).toThrow(
      "shared memory region 'a' already in manager",
    );
  });

  it("forgets one region, or all, and closes what it had open", () => {
    for (const name of ["a", "b", "c"]) register(name);
    expect(openCount()).toBe(3);
    regions.unregister("b");
    regions.unregister("nobody");
    expect(regions.status("").map(({ name }) => name)).toEqual(["a", "c"]);
    regions.unregister("");
    expect(regions.status("")).toEqual([]);
    expect(openCount()).toBe(0);
  });

  it.each([
    ["beyond the object", { byteSize: 257 }],
    ["beyond the object by its offset", { offset: 193 }],
    ["behind the object", { offset: 256, byteSize: 1 }],
    ["of no bytes", { byteSize: 0 }],
    ["of more bytes than a number tells apart", { offset: 2 ** 53, byteSize: 2 ** 53 + 2 }],
    ["of as many bytes as 64 bits can say", { byteSize: 2 ** 64, offset: 2 ** 64 }],
  ])("refuses a region %s and keeps nothing open", (_title, more) => {
    expect(() => register("a", more)).toThrow(
      "failed to register shared memory region 'a': invalid args",
    );
    expect(openCount()).toBe(0);
  });

  it.each([
    "",
    "/",
    "/.",
    "/..",
    "/../etc/passwd",
    "/a/b",
    "/nowhere",
    "/a\0b",
    `/${"a".repeat(256)}`,
  ])("refuses the key '%s'", (key) => {
    expect(() => register("a", { key })).toThrow(`Unable to open shared memory region: '${key}'`);
  });

  it("finds an object whatever slashes its key begins with", () => {
    register("a", { key: memory.key.slice(1) });
    register("b", { key: `//${memory.key}` });
    expect(regions.status("")).toHaveLength(2);
  });

  it("refuses links, folders and pipes where an object should be", () => {
    const link = `${memory.path}-link`;
    const folder = `${memory.path}-folder`;
    const pipe = `${memory.path}-pipe`;
    symlinkSync(memory.path, link);
    mkdirSync(folder);
    execFileSync("sh", ["-c", `mkfifo ${pipe}`]);
    try {
      for (const path of [link, folder, pipe]) {
        const key = path.slice("/dev/shm".length);
        expect(() => register("a", { key })).toThrow("Unable to open shared memory region");
      }
    } finally {
      for (const path of [link, folder, pipe]) rmSync(path, { recursive: true });
    }
  });

  it("refuses memory of a Python backend", () => {
    const key = "/triton_python_backend_shm_region_1";
    expect(() => register("a", { key })).toThrow(
      `cannot register shared memory region 'a' with key '${key}' ` +
        "as the key contains the reserved prefix 'triton_python_backend_shm_region_'",
    );
  });

  it("refuses a name that is too long, and more regions than it may hold", () => {
    expect(() => register("n".repeat(1025))).toThrow("expected at most 1024");
    for (let i = 0; i < 1024; i += 1) register(`r${i}`);
    expect(() => register("one more")).toThrow("given one more than 1024");
  });

  it("registers nothing unless that is allowed", () => {
    regions = new SharedMemoryRegions(false);
    expect(() => register("a")).toThrow(
      "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    );
    expect(regions.status("")).toEqual([]);
    expect(openCount()).toBe(0);
  });
});
