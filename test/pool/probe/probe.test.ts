import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { Probe, type ProbedVersion, type ProbeOptions } from "../../../pool/probe/probe.ts";
import type { FetchedVersion } from "../../../pool/fetched-version.ts";
import { identityModel, onnxModel } from "../../helpers/onnx-model.ts";
import { onnxVersion, testFolder } from "../../helpers/onnx-version.ts";

const identity = identityModel([{ name: "X", datatype: "FP16", shape: ["n", 3] }, "Y"]);
const megabyte = 2 ** 20;

function options(more: Partial<ProbeOptions> = {}): ProbeOptions {
  return {
    cacheDirectory: testFolder(),
    memoryLimitBytes: 1024 * megabyte,
    timeLimitMilliseconds: 20_000,
    ...more,
  };
}

/** As a server does that has just started. */
function probe(source: FetchedVersion, settings = options()): Promise<ProbedVersion> {
  return new Probe(settings).version(source, true);
}

/** The only file below a folder of the cache. */
function onlyFile(folder: string, name: string): string {
  const [file = "", more] = readdirSync(path.join(folder, name));
  expect(more).toBeUndefined();
  return path.join(folder, name, file);
}

describe("Probe", () => {
  it("finds a graph's inputs and outputs in a process of its own", async () => {
    const { finding, graph } = await probe(onnxVersion(identity));
    expect(finding).toMatchObject({
      inputs: [{ name: "X", datatype: "FP16", shape: [-1, 3] }],
      outputs: [{ name: "Y", datatype: "FP16", shape: [-1, 3] }],
    });
    expect(finding.loadMilliseconds).toBeGreaterThan(0);
    expect(finding.peakBytes).toBeGreaterThan(megabyte);
    expect(graph).toBeUndefined();
  });

  it("opens a content only once", async () => {
    const settings = options();
    await probe(onnxVersion(identity), settings);
    const stored = onlyFile(settings.cacheDirectory, "findings-1");
    writeFileSync(stored, readFileSync(stored, "utf8").replace(/"peakBytes":\d+/, '"peakBytes":7'));
    expect((await probe(onnxVersion(identity), settings)).finding.peakBytes).toBe(7);
    writeFileSync(stored, "{");
    expect((await probe(onnxVersion(identity), settings)).finding.peakBytes).not.toBe(7);
  });

  it("keeps the optimised graph of a model of some size, for the first load already", async () => {
    const settings = options();
    const first = await probe(onnxVersion(heavyModel(2)), settings);
    expect(readdirSync(first.graph?.folder ?? "").toSorted()).toEqual([
      "model.onnx",
      "sizes.json",
      "weights.bin",
    ]);
    expect(await probe(onnxVersion(heavyModel(2)), settings)).toEqual({
      finding: first.finding,
      graph: { folder: first.graph?.folder, release: expect.any(Function) },
    });
  });

  it("saves no graph where no instance is on the CPU, and makes up for it later", async () => {
    const settings = options();
    const source = onnxVersion(heavyModel(2));
    const onGpu = await new Probe(settings).version(source, false);
    expect(onGpu.graph).toBeUndefined();
    const { graph } = await probe(source, settings);
    expect(existsSync(path.join(graph?.folder ?? "", "model.onnx"))).toBe(true);
  });

  it("tells graphs apart by the weights beside them and by the optimisation that is asked for", async () => {
    const settings = options();
    const source = onnxVersion(heavyModel(2));
    const weights = path.join(source.versionDirectory, "weights");
    const folders = new Set<string | undefined>();
    const see = async (version: FetchedVersion): Promise<number> =>
      folders.add((await probe(version, settings)).graph?.folder).size;
    writeFileSync(weights, "one");
    expect(await see(source)).toBe(1);
    writeFileSync(weights, "two");
    expect(await see(source)).toBe(2);
    const optimization = {
      graph: { level: -1 },
      priority: "PRIORITY_DEFAULT",
      gatherKernelBufferThreshold: 0,
      eagerBatching: false,
    } as const;
    expect(await see({ ...source, config: { ...source.config, optimization } })).toBe(3);
  });

  it("does without a graph that the runtime cannot save, and does not try again", async () => {
    const settings = options();
    const model = unsavableModel();
    const first = await probe(onnxVersion(model), settings);
    expect(first).toMatchObject({ finding: { inputs: [{ name: "C" }, { name: "X" }] } });
    expect(first.graph?.folder).toBeUndefined();
    expect((await probe(onnxVersion(model), settings)).finding).toEqual(first.finding);
  });

  it("does without a cache that others could write to", async () => {
    const settings = options();
    const source = onnxVersion(heavyModel(2));
    const { graph } = await probe(source, settings);
    chmodSync(path.dirname(graph?.folder ?? ""), 0o777);
    const again = await probe(source, settings);
    expect(again).toMatchObject({ finding: { inputs: [{ name: "X" }] }, graph: undefined });
  });

  it("loads all the same where nothing can be kept", async () => {
    const file = path.join(testFolder(), "file");
    writeFileSync(file, "");
    const { finding, graph } = await probe(
      onnxVersion(heavyModel(2)),
      options({ cacheDirectory: file }),
    );
    expect(finding.inputs).toHaveLength(1);
    expect(graph).toBeUndefined();
  });

  it("passes on why a file does not open", async () => {
    await expect(probe(onnxVersion(Uint8Array.of(1, 2)))).rejects.toThrow(
      "failed to load model 'm': onnx runtime error: Load model failed:Protobuf parsing failed.",
    );
  });

  it("ends a process that takes too long", async () => {
    await expect(
      probe(onnxVersion(identity), options({ timeLimitMilliseconds: 1 })),
    ).rejects.toThrow("failed to load model 'm': opening its file took longer than 1 ms");
  });

  it("refuses a model that wants more memory than it may have, and lives on", async () => {
    const heavy = onnxVersion(heavyModel(96));
    const bounded = options({ memoryLimitBytes: 32 * megabyte });
    await expect(probe(heavy, bounded)).rejects.toThrow("failed to load model 'm'");
    expect((await probe(heavy)).finding.peakBytes).toBeGreaterThan(96 * megabyte);
  });
});

/** A model that carries so many MiB of weights. */
function heavyModel(megabytes: number): Uint8Array {
  const shape = [(megabytes / 4) * megabyte];
  return onnxModel({
    inputs: [{ name: "X", datatype: "FP32", shape }],
    outputs: [{ name: "Y", datatype: "FP32", shape }],
    initializers: [
      { name: "weights", datatype: "FP32", shape, bytes: new Uint8Array(megabytes * megabyte) },
    ],
    nodes: [{ op: "Add", inputs: ["X", "weights"], outputs: ["Y"] }],
  });
}

/** The runtime writes the weights of a branch down twice and then refuses to read them. */
function unsavableModel(): Uint8Array {
  const shape = [megabyte / 4];
  const x = { name: "X", datatype: "FP32", shape } as const;
  const branch = (name: string) => ({
    inputs: [],
    outputs: [{ ...x, name }],
    initializers: [{ ...x, name: `weights of ${name}`, bytes: new Uint8Array(megabyte) }],
    nodes: [{ op: "Add", inputs: ["X", `weights of ${name}`], outputs: [name] }],
  });
  const attributes = { then_branch: branch("then"), else_branch: branch("else") };
  return onnxModel({
    inputs: [{ name: "C", datatype: "BOOL", shape: [] }, x],
    outputs: [{ ...x, name: "Y" }],
    nodes: [{ op: "If", inputs: ["C"], outputs: ["Y"], attributes }],
  });
}
