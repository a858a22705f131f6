import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { S3Fault, SeenRequest } from "../helpers/s3-proxy.ts";
import { S3Stand } from "../helpers/s3-stand.ts";

const content = new Uint8Array(20 * 2 ** 20).map((_, i) => (i * 31 + (i >> 12)) % 251);

let stand: S3Stand;
beforeAll(async () => {
  stand = await S3Stand.start();
});
afterAll(() => stand.stop());
beforeEach(() => {
  stand.proxy.fault = () => undefined;
});

let made = 0;

/** A model that nothing has cached: a small file, and a large one that comes in parts. */
async function newModel(): Promise<string> {
  const name = `model${++made}`;
  await stand.server.put(`${name}/config.pbtxt`, `# ${name}`);
  await stand.server.put(`${name}/1/model.onnx`, content);
  return name;
}

/** The fault of the first so many requests for content that fit. */
function firstOf(
  count: number,
  fault: S3Fault,
  fits: (request: SeenRequest) => boolean = () => true,
): (request: SeenRequest) => S3Fault | undefined {
  let left = count;
  return (request) => {
    if (request.method !== "GET" || !request.url.includes("model.onnx") || !fits(request))
      return undefined;
    return left-- > 0 ? fault : undefined;
  };
}

function isSecondPart({ range = "" }: SeenRequest): boolean {
  return range.startsWith("bytes=8388608-");
}

function isLastPart({ range = "" }: SeenRequest): boolean {
  return range.startsWith("bytes=16777216-");
}

async function expectWhole(name: string): Promise<void> {
  const local = await stand.fetch(name);
  const file = readFileSync(path.join(local.versionDirectory, "model.onnx"));
  expect(file.equals(content)).toBe(true);
  await local.release();
}

/** Neither a half-written entry nor anything temporary. */
function expectNothingLeft(before: readonly string[]): void {
  expect(stand.cached().toSorted()).toEqual(before.toSorted());
}

describe("a load from S3 that meets a fault which passes", () => {
  it.each<[string, S3Fault, ((request: SeenRequest) => boolean)?]>([
    ["answers 503 to some", { kind: "status", status: 503, code: "SlowDown" }],
    ["answers 500 to some", { kind: "status", status: 500, code: "InternalError" }],
    ["breaks connections before the first byte", { kind: "reset", afterBytes: 0 }],
    ["breaks a connection within a part", { kind: "reset", afterBytes: 3_000_000 }, isSecondPart],
    ["cuts bodies short", { kind: "truncate", afterBytes: 5_000_000 }, isSecondPart],
    ["stalls within a part", { kind: "stall", afterBytes: 1_000_000 }, isSecondPart],
    ["turns a bit round on the way", { kind: "corrupt", atByte: 4_000_000 }, isSecondPart],
  ])("succeeds when S3 %s", async (_, fault, fits) => {
    const name = await newModel();
    const seen: number[] = [];
    stand.proxy.fault = firstOf(2, fault, fits);
    const local = await stand.store.fetch(await stand.read(name), 1, {
      onProgress: ({ fetchedBytes }) => seen.push(fetchedBytes),
    });
    const file = readFileSync(path.join(local.versionDirectory, "model.onnx"));
    expect(file.equals(content)).toBe(true);
    expect(Math.max(...seen)).toBe(seen.at(-1));
    await local.release();
  });

  it("reads a config whole that came short at first", async () => {
    const name = await newModel();
    let faults = 1;
    stand.proxy.fault = ({ url }) =>
      url.includes("config.pbtxt") && faults-- > 0
        ? { kind: "truncate", afterBytes: 2 }
        : undefined;
    expect((await stand.read(name)).config?.text).toBe(`# ${name}`);
  });

  it("succeeds when listings fail at first", async () => {
    const name = await newModel();
    let failures = 2;
    stand.proxy.fault = ({ url }) =>
      url.includes("list-type") && failures-- > 0
        ? { kind: "status", status: 503, code: "SlowDown" }
        : undefined;
    await expectWhole(name);
    expect(failures).toBeLessThan(0);
  });
});

describe("a load from S3 that meets a fault which stays", () => {
  it.each<[string, S3Fault, RegExp]>([
    [
      "answers 503",
      { kind: "status", status: 503, code: "SlowDown" },
      /^model '\w+' version 1: cannot be read from S3 \(SlowDown\)$/u,
    ],
    [
      "refuses",
      { kind: "status", status: 403, code: "AccessDenied" },
      /^model '\w+' version 1: cannot be read from S3 \(AccessDenied\)$/u,
    ],
    [
      "cuts bodies short",
      { kind: "truncate", afterBytes: 1000 },
      /^model '\w+' version 1: cannot be read from S3 \(Truncated\)$/u,
    ],
    [
      "stalls",
      { kind: "stall", afterBytes: 1000 },
      /^model '\w+' version 1: cannot be read from S3 \(Stalled\)$/u,
    ],
    [
      "changes bytes",
      { kind: "corrupt", atByte: 1000 },
      /^model '\w+' version 1: cannot be read from S3 \(ChecksumMismatch\)$/u,
    ],
  ])("fails with the reason when S3 %s, and leaves nothing behind", async (_, fault, message) => {
    const name = await newModel();
    const before = stand.cached();
    stand.proxy.fault = firstOf(Infinity, fault);
    await expect(stand.fetch(name)).rejects.toThrow(message);
    expectNothingLeft(before);
    stand.proxy.fault = () => undefined;
    await expectWhole(name);
  });
});

describe("a model in S3 that changes while it is fetched", () => {
  const changed = /^model '\w+' version 1: changed in S3 while it was fetched; another load/u;

  it("fails when it changes between two ranged reads, and is never a mixture", async () => {
    const name = await newModel();
    const before = stand.cached();
    const other = content.map((byte) => byte ^ 1);
    stand.proxy.fault = firstOf(
      1,
      { kind: "after", work: () => stand.server.put(`${name}/1/model.onnx`, other) },
      isLastPart,
    );
    await expect(stand.fetch(name)).rejects.toThrow(changed);
    expectNothingLeft(before);
    const local = await stand.fetch(name);
    const file = readFileSync(path.join(local.versionDirectory, "model.onnx"));
    expect(file.equals(other)).toBe(true);
    await local.release();
  });

  it("fails when it changes, or goes, between the listing and the read", async () => {
    const name = await newModel();
    const old = await stand.read(name);
    await stand.server.put(`${name}/1/model.onnx`, "other");
    await expect(stand.store.fetch(old, 1)).rejects.toThrow(changed);
    const gone = await stand.read(name);
    await stand.server.remove(`${name}/1/`);
    await expect(stand.store.fetch(gone, 1)).rejects.toThrow(changed);
  });

  it("fails when a server that does not know If-Match answers with another state", async () => {
    const name = await newModel();
    stand.proxy.fault = firstOf(1, { kind: "etag", etag: '"another"' }, isLastPart);
    await expect(stand.fetch(name)).rejects.toThrow(changed);
  });

  it("fails when its config changes between the listing and the read", async () => {
    const name = await newModel();
    stand.proxy.fault = ({ url }) =>
      url.includes("config.pbtxt")
        ? { kind: "after", work: () => stand.server.put(`${name}/config.pbtxt`, "# other") }
        : undefined;
    await expect(stand.read(name)).rejects.toThrow(
      `model '${name}': config.pbtxt: changed in S3 while it was fetched`,
    );
    stand.proxy.fault = () => undefined;
    expect((await stand.read(name)).config?.text).toBe("# other");
  });
});

describe("a load from S3 that nobody waits for any more", () => {
  it("stops and leaves nothing behind", async () => {
    const name = await newModel();
    const before = stand.cached();
    const model = await stand.read(name);
    const controller = new AbortController();
    stand.proxy.fault = firstOf(Infinity, { kind: "stall", afterBytes: 100_000 });
    const fetching = stand.store.fetch(model, 1, {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    });
    await expect(fetching).rejects.toThrow("enough");
    await expect.poll(() => stand.cached().toSorted()).toEqual(before.toSorted());
  });
});
