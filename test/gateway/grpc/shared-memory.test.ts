import { status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SharedMemoryRegions } from "../../../gateway/shared-memory/regions.ts";
import { collect, type Fields } from "../../helpers/grpc-client.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { floatBytes, MemoryObject } from "../../helpers/memory-object.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { GrpcStand } from "./grpc-stand.ts";

let stand: GrpcStand;
let given: MemoryObject;
let taken: MemoryObject;

beforeAll(async () => {
  stand = await GrpcStand.start({ sharedMemory: new SharedMemoryRegions(true) });
  const pair = {
    input: ["A", "B"].map((name) => modelInput(name, "TYPE_FP32", [2])),
    output: ["A", "B"].map((name) => modelOutput(name, "TYPE_FP32", [2])),
  };
  stand.engine.add(servedModel("pair", pair), (asked) => [echo(asked)]);
});
afterAll(() => stand.stop());

beforeEach(async () => {
  given = new MemoryObject(16);
  taken = new MemoryObject(16);
  given.write(floatBytes(1, 2), 8);
  await register({ name: "in", key: given.key, offset: 8, byteSize: 8 });
  await register({ name: "out", key: taken.key, byteSize: 16 });
});
afterEach(async () => {
  await stand.ask("SystemSharedMemoryUnregister", {});
  given.remove();
  taken.remove();
});

function register(fields: Fields): Promise<Fields> {
  return stand.ask("SystemSharedMemoryRegister", fields);
}

async function regionsOf(method: string, name = ""): Promise<Fields> {
  const { regions = {} } = await stand.ask(method, { name });
  return regions;
}

function slice(region: string, byteSize: number, offset?: number): Fields {
  return {
    shared_memory_region: { stringParam: region },
    shared_memory_byte_size: { int64Param: byteSize },
    ...(offset !== undefined && { shared_memory_offset: { int64Param: offset } }),
  };
}

/** A request whose input and output lie in shared memory. */
function request(inputPlace: Fields, outputPlace: Fields): Fields {
  const tensor = { name: "INPUT", datatype: "FP32", shape: [1, 2] };
  return {
    modelName: "echo_FP32",
    inputs: [{ ...tensor, parameters: inputPlace }],
    outputs: [{ name: "OUTPUT", parameters: outputPlace }],
  };
}

const answered = {
  outputs: [{ name: "OUTPUT", datatype: "FP32", shape: [1, 2] }],
  rawOutputContents: [Buffer.alloc(0)],
};

describe("shared memory over gRPC", () => {
  it("gives inputs and takes outputs, of which the answer tells without their data", async () => {
    expect(await stand.infer(request(slice("in", 8), slice("out", 8, 4)))).toMatchObject(answered);
    expect(taken.read(8, 4)).toEqual(floatBytes(1, 2));
  });

  it("does so on a stream, too", async () => {
    const stream = stand.stream();
    stream.write(request(slice("in", 8), slice("out", 8)));
    stream.end();
    const [response] = await collect(stream);
    expect(response?.["inferResponse"]).toMatchObject(answered);
    expect(taken.read(8)).toEqual(floatBytes(1, 2));
    await stand.ask("SystemSharedMemoryUnregister", { name: "in" });
    expect(Object.keys(await regionsOf("SystemSharedMemoryStatus"))).toEqual(["out"]);
  });

  it("needs no raw contents for the inputs that lie there", async () => {
    const tensor = { datatype: "FP32", shape: [2] };
    const response = await stand.infer({
      modelName: "pair",
      inputs: [
        { ...tensor, name: "A", parameters: slice("in", 8) },
        { ...tensor, name: "B" },
      ],
      rawInputContents: [floatBytes(3, 4)],
    });
    expect(response["rawOutputContents"]).toEqual([floatBytes(1, 2), floatBytes(3, 4)]);
  });

  it.each<[Fields, number, string]>([
    [slice("in", 9), status.INVALID_ARGUMENT, "Invalid offset + byte size for shared memory"],
    [slice("in", 8, 8), status.INVALID_ARGUMENT, "Invalid offset for shared memory region: 'in'"],
    [slice("in", 8, -1), status.INVALID_ARGUMENT, "Invalid offset for shared memory region: 'in'"],
    [slice("in", -8), status.INVALID_ARGUMENT, "Invalid offset + byte size for shared memory"],
    [slice("nobody", 8), status.NOT_FOUND, "Unable to find shared memory region: 'nobody'"],
    [
      { shared_memory_region: { int64Param: 1 } },
      status.INVALID_ARGUMENT,
      "invalid value type for 'shared_memory_region' parameter for tensor 'INPUT', expected string_param.",
    ],
    [
      { ...slice("in", 8), shared_memory_offset: { stringParam: "0" } },
      status.INVALID_ARGUMENT,
      "invalid value type for 'shared_memory_offset' parameter for tensor 'INPUT', expected int64_param.",
    ],
    [
      { shared_memory_region: { stringParam: "in" } },
      status.INVALID_ARGUMENT,
      "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'INPUT'",
    ],
    [
      { shared_memory_offset: { int64Param: 0 } },
      status.INVALID_ARGUMENT,
      "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'INPUT'",
    ],
  ])("refuses an input in %j", async (place, code, text) => {
    const asked = stand.infer(request(place, slice("out", 8)));
    await expect(asked).rejects.toMatchObject({ code, details: expect.stringContaining(text) });
  });

  it.each<[Fields, number, string]>([
    [slice("out", 7), status.INTERNAL, "(7 bytes) should be at least 8 bytes to hold the results"],
    [slice("nobody", 8), status.NOT_FOUND, "Unable to find shared memory region: 'nobody'"],
    [
      { ...slice("out", 8), classification: { int64Param: 1 } },
      status.INVALID_ARGUMENT,
      "output can't set both 'shared_memory_region' and 'classification'",
    ],
  ])("refuses an output in %j", async (place, code, text) => {
    const asked = stand.infer(request(slice("in", 8), place));
    await expect(asked).rejects.toMatchObject({ code, details: expect.stringContaining(text) });
  });

  it("refuses contents beside memory", async () => {
    const place = { parameters: slice("in", 8), contents: { fp32Contents: [1, 2] } };
    const inputs = [{ name: "INPUT", datatype: "FP32", shape: [1, 2], ...place }];
    await expect(stand.infer({ modelName: "echo_FP32", inputs })).rejects.toThrow(
      "unexpected 'content' provided when using shared memory for input tensor 'INPUT' for model 'echo_FP32'",
    );
  });

  it("registers regions, shows and forgets them", async () => {
    const out = { name: "out", key: taken.key, byteSize: 16 };
    expect(await regionsOf("SystemSharedMemoryStatus", "out")).toMatchObject({ out });
    await expect(register({ name: "out" })).rejects.toMatchObject({ code: status.ALREADY_EXISTS });
    await stand.ask("SystemSharedMemoryUnregister", { name: "out" });
    expect(Object.keys(await regionsOf("SystemSharedMemoryStatus"))).toEqual(["in"]);
    await expect(regionsOf("SystemSharedMemoryStatus", "out")).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Unable to find system shared memory region: 'out'",
    });
    await expect(register({ name: "z", key: given.key, byteSize: 17 })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "failed to register shared memory region 'z': invalid args",
    });
  });

  it("has no memory of GPUs", async () => {
    await expect(stand.ask("CudaSharedMemoryRegister", { name: "gpu" })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "failed to register CUDA shared memory region: 'gpu', GPUs not supported",
    });
    expect(await regionsOf("CudaSharedMemoryStatus")).toEqual({});
    await expect(regionsOf("CudaSharedMemoryStatus", "gpu")).rejects.toThrow("Unable to find cuda");
    await stand.ask("CudaSharedMemoryUnregister", {});
    expect(Object.keys(await regionsOf("SystemSharedMemoryStatus"))).toHaveLength(2);
  });

  it("is refused unless it is allowed", async () => {
    const closed = await GrpcStand.start();
    try {
      const asked = closed.ask("SystemSharedMemoryRegister", { name: "in", key: given.key });
      await expect(asked).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
      await expect(closed.infer(request(slice("in", 8), {}))).rejects.toMatchObject({
        code: status.NOT_FOUND,
      });
    } finally {
      await closed.stop();
    }
  });
});
