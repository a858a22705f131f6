import { describe, expect, it } from "vitest";
import type { LoadedModel } from "../../../pool/backend/backend.ts";
import { onnxruntimeBackend } from "../../../pool/backend/onnxruntime.ts";
import { encodeStrings } from "../../../pool/backend/string-elements.ts";
import { cpu } from "../../../pool/devices.ts";
import { byteSize, datatypes } from "../../../protocol/datatype.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { identityModel, onnxModel } from "../../helpers/onnx-model.ts";
import { onnxVersion } from "../../helpers/onnx-version.ts";

function load(model: Uint8Array, config: Partial<ModelConfig> = {}): Promise<LoadedModel> {
  const source = onnxVersion(model, config);
  return onnxruntimeBackend.load({
    modelName: source.name,
    config: source.config,
    versionDirectory: source.versionDirectory,
    device: cpu,
    cores: 1,
  });
}

function floats(name: string, shape: readonly number[], values: readonly number[]): Tensor {
  return { name, datatype: "FP32", shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

const identity = identityModel([{ name: "X", datatype: "FP32", shape: ["n", 2] }, "Y"]);

describe("onnxruntimeBackend", () => {
  it.each(datatypes.filter((datatype) => datatype !== "BYTES"))(
    "gives %s back bit by bit",
    async (datatype) => {
      const model = await load(identityModel([{ name: "X", datatype, shape: ["n"] }, "Y"]));
      const pattern =
        datatype === "BOOL" ? [1, 0, 1, 1, 0, 1, 0, 0] : [0, 1, 60, 127, 128, 191, 200, 63];
      const bytes = Uint8Array.from(
        { length: 4 * byteSize(datatype) },
        (_, i) => pattern[i % 8] ?? 0,
      );
      expect(model.inputs).toEqual([{ name: "X", datatype, shape: [-1] }]);
      const [output] = model.run([{ name: "X", datatype, shape: [4], bytes }], ["Y"]);
      expect(output).toMatchObject({ name: "Y", datatype, shape: [4] });
      expect(Buffer.from(output?.bytes ?? [])).toEqual(Buffer.from(bytes));
    },
  );

  it("gives strings back, a byte order mark and the empty one included", async () => {
    const model = await load(identityModel([{ name: "X", datatype: "BYTES", shape: ["n"] }, "Y"]));
    const bytes = encodeStrings(["", "\uFEFFtide", "pool 🌊"]);
    const [output] = model.run([{ name: "X", datatype: "BYTES", shape: [3], bytes }], ["Y"]);
    expect(Buffer.from(output?.bytes ?? [])).toEqual(Buffer.from(bytes));
  });

  it.each([
    ["is not valid UTF-8", [0xff, 0xfe]],
    ["contains a NUL byte", [0x61, 0, 0x62]],
  ])("refuses a string that %s", async (problem, element) => {
    const model = await load(identityModel([{ name: "X", datatype: "BYTES", shape: ["n"] }, "Y"]));
    const bytes = Uint8Array.from([1, 0, 0, 0, 0x61, element.length, 0, 0, 0, ...element]);
    const input: Tensor = { name: "X", datatype: "BYTES", shape: [2], bytes };
    expect(() => model.run([input], ["Y"])).toThrow(`input 'X': element 1 ${problem}`);
  });

  it("runs tensors without elements", async () => {
    const [output] = (await load(identity)).run([floats("X", [0, 2], [])], ["Y"]);
    expect(output).toMatchObject({ shape: [0, 2], bytes: new Uint8Array() });
  });

  it("takes [1] for a scalar", async () => {
    const model = await load(identityModel([{ name: "X", datatype: "FP32", shape: [] }, "Y"]));
    const [output] = model.run([floats("X", [1], [7])], ["Y"]);
    expect(output).toMatchObject({ shape: [], bytes: new Uint8Array(Float32Array.of(7).buffer) });
  });

  it("runs only for the outputs that are asked for, whatever they are called", async () => {
    const model = await load(
      identityModel(
        [{ name: "X", datatype: "FP32", shape: ["n"] }, "constructor"],
        [{ name: "toString", datatype: "FP32", shape: ["n"] }, "Z"],
      ),
    );
    const inputs = [floats("X", [1], [1]), floats("toString", [1], [2])];
    expect(model.run(inputs, ["Z"])).toEqual([floats("Z", [1], [2])]);
  });

  it("refuses a run without an input that the graph needs", async () => {
    const model = await load(identity);
    expect(() => model.run([], ["Y"])).toThrow("model 'm': input 'X' is missing");
  });

  it("blames the input for a shape that the graph cannot take, without telling a path", async () => {
    const model = await load(identity);
    expect(() => model.run([floats("X", [1, 3], [1, 2, 3])], ["Y"])).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: expect.not.stringMatching(/\/\w+\//),
      }),
    );
  });

  it("computes in BF16 where inputs and outputs are BF16", async () => {
    const model = await load(
      onnxModel({
        inputs: [{ name: "X", datatype: "BF16", shape: ["n"] }],
        outputs: [
          { name: "Y", datatype: "BF16", shape: ["n"] },
          { name: "F", datatype: "FP32", shape: ["n"] },
        ],
        nodes: [
          { op: "Identity", inputs: ["X"], outputs: ["Y"] },
          { op: "Cast", inputs: ["X"], outputs: ["F"], attributes: { to: 1 } },
        ],
      }),
    );
    const bytes = new Uint8Array(Uint16Array.of(0x3fc0, 0xc000).buffer);
    const [y, f] = model.run([{ name: "X", datatype: "BF16", shape: [2], bytes }], ["Y", "F"]);
    expect(y?.bytes).toEqual(bytes);
    expect(f).toEqual(floats("F", [2], [1.5, -2]));
  });

  it("says why a file does not load, without telling where it is", async () => {
    const text =
      "failed to load model 'm': onnx runtime error: Load model failed:Protobuf parsing failed.";
    await expect(load(Uint8Array.of(1, 2, 3))).rejects.toThrow(
      expect.objectContaining({ message: text }),
    );
  });

  it("refuses a model file outside of its version", async () => {
    await expect(load(identity, { defaultModelFilename: "../../model.onnx" })).rejects.toThrow(
      "unable to find '../../model.onnx' for model 'm'",
    );
  });
});
