import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelPattern } from "../../../protocol/model-pattern.ts";
import {
  defaultPoolFile,
  parsePoolFile,
  poolOf,
  readPoolFile,
} from "../../../cli/pool-file/pool-file.ts";
import { UsageError } from "../../../cli/usage-error.ts";

const page = await readFile(path.resolve(import.meta.dirname, "../../../docs/pools.md"), "utf8");

const bare = {
  minWorkers: 0,
  maxWorkers: 4,
  targetInFlight: 32,
  idleMilliseconds: 60_000,
  stableWindowMilliseconds: 60_000,
  device: { kind: "auto" },
  memoryBudgetBytes: undefined,
  concurrency: 16,
  scaler: { kind: "process" },
};

describe("parsePoolFile", () => {
  it("reads the example of its page", () => {
    const example = /```yaml\n(?<text>.*?)```/su.exec(page)?.groups?.["text"] ?? "";
    expect(parsePoolFile(example, "tidepool.yaml").pools).toEqual([
      {
        name: "vision",
        models: [modelPattern("resnet*"), modelPattern("yolo-v?"), modelPattern("detr")],
        minWorkers: 1,
        maxWorkers: 8,
        targetInFlight: 64,
        idleMilliseconds: 300_000,
        stableWindowMilliseconds: 30_000,
        device: { kind: "gpu", id: 0 },
        memoryBudgetBytes: 16 * 2 ** 30,
        concurrency: 32,
        scaler: { kind: "kubernetes", namespace: "inference", deployment: "tidepool-vision" },
      },
      {
        ...bare,
        name: "text",
        models: [modelPattern("bert"), modelPattern("*-embedding")],
        maxWorkers: 2,
        device: { kind: "cpu" },
        scaler: { kind: "keda" },
      },
      { ...bare, name: "default", models: [modelPattern("*")] },
    ]);
  });

  it("knows exactly the fields in its page's table", () => {
    const listed = [...page.matchAll(/^\| `(?<field>[a-z-]+)`/gmu)].map(([, field]) => field);
    const text = "pools: [{name: a, models: [x], unheard: 1}]";
    expect(() => parsePoolFile(text, "f")).toThrow(`expected one of ${listed.join(", ")}`);
  });

  it("lets a maximum that is not given rise with the minimum", () => {
    const text = "pools: [{name: a, models: [x], min-workers: 9}]";
    expect(parsePoolFile(text, "f").pools).toMatchObject([{ minWorkers: 9, maxWorkers: 9 }]);
  });

  it("takes a fraction of a second", () => {
    const text = "pools: [{name: a, models: [x], idle-seconds: 0.25}]";
    expect(parsePoolFile(text, "f").pools).toMatchObject([{ idleMilliseconds: 250 }]);
  });
});

describe("defaultPoolFile", () => {
  it("has one pool that serves every model", () => {
    const file = defaultPoolFile({ minWorkers: 1, maxWorkers: 2, idleSeconds: 0.5 });
    const pool = {
      ...bare,
      name: "default",
      models: [modelPattern("*")],
      minWorkers: 1,
      maxWorkers: 2,
      idleMilliseconds: 500,
    };
    expect(file).toEqual({ pools: [pool] });
    expect(poolOf(file, "anything")).toEqual(pool);
  });

  it("has the defaults of a file", () => {
    const options = { minWorkers: 0, maxWorkers: 4, idleSeconds: 60 };
    const file = parsePoolFile('pools: [{name: default, models: ["*"]}]', "f");
    expect(defaultPoolFile(options)).toEqual(file);
  });
});

describe("poolOf", () => {
  const text = 'pools: [{name: a, models: ["bert*", x]}, {name: b, models: ["*t", "x*"]}]';
  const file = parsePoolFile(text, "f");

  it.each([
    ["bert", "a"],
    ["gpt", "b"],
    ["x", "a"],
    ["xx", "b"],
    ["other", undefined],
  ])("gives %s to %s", (model, name) => {
    expect(poolOf(file, model)?.name).toBe(name);
  });
});

describe("readPoolFile", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "tidepool-pools-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function read(content: string | Uint8Array): Promise<unknown> {
    const file = path.join(folder, "tidepool.yaml");
    await writeFile(file, content);
    return readPoolFile(file);
  }

  const small = "pools: [{name: a, models: [x]}]\n";

  it("reads a file, with a byte order mark, too", async () => {
    expect(await read(small)).toEqual(parsePoolFile(small, "f"));
    expect(await read(`\uFEFF${small}`)).toEqual(parsePoolFile(small, "f"));
  });

  it("reads a file of 1 MiB and refuses a larger one", async () => {
    const full = small + "#".repeat(2 ** 20 - small.length);
    expect(await read(full)).toEqual(parsePoolFile(small, "f"));
    await expect(read(`${full}#`)).rejects.toThrow("given more than 1048576 bytes");
  });

  it("refuses what is no UTF-8", async () => {
    await expect(read(Buffer.from([0xff, 0xfe, 0x00]))).rejects.toThrow("expected UTF-8");
  });

  it("names a file that is not there, and the line of a mistake", async () => {
    const missing = path.join(folder, "missing.yaml");
    await expect(readPoolFile(missing)).rejects.toThrow(UsageError);
    await expect(readPoolFile(missing)).rejects.toThrow(missing);
    await expect(read("\npool: 1\n")).rejects.toThrow("tidepool.yaml:2:1: pool: unknown key");
  });
});
