import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { probeVersion, type ProbeOptions } from "../../pool/probe.ts";
import { identityModel, onnxModel } from "../helpers/onnx-model.ts";
import { onnxVersion, testFolder } from "../helpers/onnx-version.ts";

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

describe("probeVersion", () => {
  it("finds a graph's inputs and outputs in a process of its own", async () => {
    const finding = await probeVersion(onnxVersion(identity), options());
    expect(finding).toMatchObject({
      inputs: [{ name: "X", datatype: "FP16", shape: [-1, 3] }],
      outputs: [{ name: "Y", datatype: "FP16", shape: [-1, 3] }],
    });
    expect(finding.loadMilliseconds).toBeGreaterThan(0);
    expect(finding.peakBytes).toBeGreaterThan(megabyte);
  });

  it("opens a content only once", async () => {
    const settings = options();
    await probeVersion(onnxVersion(identity), settings);
    const [folder] = readdirSync(settings.cacheDirectory);
    const [file] = readdirSync(path.join(settings.cacheDirectory, folder ?? ""));
    const stored = path.join(settings.cacheDirectory, folder ?? "", file ?? "");
    writeFileSync(stored, readFileSync(stored, "utf8").replace(/"peakBytes":\d+/, '"peakBytes":7'));
    expect(await probeVersion(onnxVersion(identity), settings)).toMatchObject({ peakBytes: 7 });
    writeFileSync(stored, "{");
    expect((await probeVersion(onnxVersion(identity), settings)).peakBytes).not.toBe(7);
  });

  it("passes on why a file does not open", async () => {
    await expect(probeVersion(onnxVersion(Uint8Array.of(1, 2)), options())).rejects.toThrow(
      "failed to load model 'm': onnx runtime error: Load model failed:Protobuf parsing failed.",
    );
  });

  it("ends a process that takes too long", async () => {
    await expect(
      probeVersion(onnxVersion(identity), options({ timeLimitMilliseconds: 1 })),
    ).rejects.toThrow("failed to load model 'm': opening its file took longer than 1 ms");
  });

  it("refuses a model that wants more memory than it may have, and lives on", async () => {
    const heavy = onnxVersion(heavyModel());
    const bounded = options({ memoryLimitBytes: 32 * megabyte });
    await expect(probeVersion(heavy, bounded)).rejects.toThrow("failed to load model 'm'");
    expect((await probeVersion(heavy, options())).peakBytes).toBeGreaterThan(96 * megabyte);
  });
});

/** A model that carries 96 MiB of weights. */
function heavyModel(): Uint8Array {
  const shape = [24 * megabyte];
  return onnxModel({
    inputs: [{ name: "X", datatype: "FP32", shape }],
    outputs: [{ name: "Y", datatype: "FP32", shape }],
    initializers: [
      { name: "weights", datatype: "FP32", shape, bytes: new Uint8Array(96 * megabyte) },
    ],
    nodes: [{ op: "Add", inputs: ["X", "weights"], outputs: ["Y"] }],
  });
}
