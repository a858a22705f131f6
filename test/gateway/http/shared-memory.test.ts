import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SharedMemoryRegions } from "../../../gateway/shared-memory/regions.ts";
import { binaryInfer, errorOf } from "../../helpers/http-client.ts";
import { floatBytes, MemoryObject } from "../../helpers/memory-object.ts";
import { HttpStand } from "./http-stand.ts";

const system = "/v2/systemsharedmemory";
const cuda = "/v2/cudasharedmemory";
const place = { shared_memory_region: "out", shared_memory_byte_size: 16 };
const source = { shared_memory_region: "in", shared_memory_byte_size: 16 };
const input = { name: "IN0", shape: [1, 4], datatype: "FP32" };
const output = { name: "OUT0", parameters: place };
const placed = { name: "OUT0", datatype: "FP32", shape: [1, 4] };

let stand: HttpStand;
let given: MemoryObject;
let taken: MemoryObject;

beforeAll(async () => {
  stand = await HttpStand.start({ sharedMemory: new SharedMemoryRegions(true) });
});
afterAll(() => stand.stop());

beforeEach(async () => {
  given = new MemoryObject(32);
  taken = new MemoryObject(32);
  given.write(floatBytes(1, 2, 3, 4), 16);
  await stand.post(`${system}/region/in/register`, { key: given.key, byte_size: 16, offset: 16 });
  await stand.post(`${system}/region/out/register`, { key: taken.key, byte_size: 32 });
});
afterEach(async () => {
  await stand.post(`${system}/unregister`);
  given.remove();
  taken.remove();
});

/** The ways an infer call may come: by the shortest way, and as node and the router read it. */
const ways: [string, Readonly<Record<string, string>>][] = [
  ["a plain call", {}],
  ["any other call", { "x-other": "1" }],
];

describe.each(ways)("shared memory in %s", (_title, headers) => {
  const infer = (body: object) => stand.infer("batch", body, headers);

  it("gives inputs and takes outputs, of which the answer tells without their data", async () => {
    const inputs = [{ ...input, parameters: source }];
    const { status, text } = await infer({ inputs, outputs: [output] });
    expect([status, JSON.parse(text).outputs]).toEqual([200, [placed]]);
    expect(taken.read(32)).toEqual(Buffer.concat([floatBytes(1, 2, 3, 4), Buffer.alloc(16)]));
  });

  it("takes outputs at an offset, however often the same head comes", async () => {
    const parameters = { ...place, shared_memory_offset: 8 };
    const inputs = [{ ...input, parameters: { binary_data_size: 16 } }];
    const head = { inputs, outputs: [{ ...output, parameters }] };
    for (const value of [5, 6, 7]) {
      const [body, more] = binaryInfer(head, floatBytes(value, 0, 0, value));
      const { text } = await stand.infer("batch", body, { ...headers, ...more });
      expect(JSON.parse(text).outputs).toEqual([placed]);
      expect(taken.read(16, 8)).toEqual(floatBytes(value, 0, 0, value));
    }
  });

  it("closes what it used, so that a region can be unregistered", async () => {
    await infer({ inputs: [{ ...input, parameters: source }], outputs: [output] });
    await infer({ inputs: [{ ...input, parameters: source, shape: [1, 5] }] });
    await stand.post(`${system}/unregister`);
    expect((await stand.get(`${system}/status`)).text).toBe("[]");
  });

  it.each([
    [{ ...source, shared_memory_byte_size: 17 }, 400, "Invalid offset + byte size"],
    [{ ...source, shared_memory_offset: 16 }, 400, "Invalid offset for shared memory region: 'in'"],
    [{ ...source, shared_memory_region: "nobody" }, 404, "Unable to find shared memory region"],
    [
      { ...source, shared_memory_byte_size: "16" },
      500,
      "Unable to parse 'shared_memory_byte_size'",
    ],
    [{ ...source, shared_memory_byte_size: 8 }, 400, "Expected 16, got 8"],
  ])("refuses an input in %j", async (parameters, status, text) => {
    const answer = await infer({ inputs: [{ ...input, parameters }] });
    expect([answer.status, errorOf(answer)]).toEqual([status, expect.stringContaining(text)]);
  });

  it.each([
    [{ ...place, shared_memory_byte_size: 15 }, 500, "should be at least 16 bytes to hold"],
    [{ ...place, shared_memory_offset: 32 }, 400, "Invalid offset for shared memory region: 'out'"],
    [{ ...place, shared_memory_region: "nobody" }, 404, "Unable to find shared memory region"],
    [{ ...place, classification: 1 }, 400, "both 'shared_memory_region' and 'classification'"],
    [{ ...place, binary_data: true }, 400, "both 'shared_memory_region' and 'binary_data'"],
  ])("refuses an output in %j", async (parameters, status, text) => {
    const inputs = [{ ...input, parameters: source }];
    const answer = await infer({ inputs, outputs: [{ ...output, parameters }] });
    expect([answer.status, errorOf(answer)]).toEqual([status, expect.stringContaining(text)]);
  });
});

describe("shared memory over HTTP", () => {
  it("takes the outputs of a call that is told what it waits for", async () => {
    const inputs = [{ ...input, parameters: source }];
    const headers = { accept: "text/event-stream" };
    const { text } = await stand.infer("batch", { inputs, outputs: [output] }, headers);
    expect(text).toContain(`"outputs":[${JSON.stringify(placed)}]`);
    expect(taken.read(16)).toEqual(floatBytes(1, 2, 3, 4));
  });

  it("is not for jobs", async () => {
    const headers = { prefer: "respond-async" };
    const text = "shared memory: given for a job, expected tensors within the request";
    const inputs = [{ ...input, parameters: source }];
    expect(errorOf(await stand.infer("batch", { inputs }, headers))).toBe(text);
    const outputs = [{ ...input, data: [1, 2, 3, 4] }];
    const answer = await stand.infer("batch", { inputs: outputs, outputs: [output] }, headers);
    expect([answer.status, errorOf(answer)]).toEqual([501, text]);
  });

  it("registers regions, shows and forgets them", async () => {
    const out = { name: "out", key: taken.key, offset: 0, byte_size: 32 };
    expect(JSON.parse((await stand.get(`${system}/region/out/status`)).text)).toEqual([out]);
    const { status, text, headers } = await stand.post(`${system}/region/out/unregister`);
    expect([status, text, headers["content-type"]]).toEqual([200, "", "application/json"]);
    const shown = await stand.get(`${system}/region/out/status`);
    expect(shown.status).toBe(404);
    const left = { name: "in", key: given.key, offset: 16, byte_size: 16 };
    expect(JSON.parse((await stand.get(`${system}/status`)).text)).toEqual([left]);
  });

  it("knows a region by the name that its path spells", async () => {
    const body = { key: given.key, byte_size: 32 };
    await stand.post(`${system}/region/my%20region/register`, body);
    const { text } = await stand.get(`${system}/region/my%20region/status`);
    expect(JSON.parse(text)[0].name).toBe("my region");
  });

  it.each([
    ["{}", 400, "Shared memory register request has no 'key' field"],
    ['{"key":"/k"}', 400, "Shared memory register request has no 'byte_size' field"],
    ['{"key":1,"byte_size":1}', 500, "attempt to access JSON non-string as string"],
    ['{"key":"/k","byte_size":-1}', 500, "attempt to access JSON non-unsigned-integer as"],
    ['{"key":"/k","byte_size":1,"offset":"0"}', 500, "attempt to access JSON non-unsigned-integer"],
    ["{", 500, "failed to parse the request JSON buffer"],
    ['{"key":"/nowhere","byte_size":1}', 500, "Unable to open shared memory region: '/nowhere'"],
  ])("refuses to register %s", async (body, status, text) => {
    const answer = await stand.post(`${system}/region/new/register`, body);
    expect([answer.status, errorOf(answer)]).toEqual([status, expect.stringContaining(text)]);
  });

  it("asks for a name", async () => {
    for (const kind of ["system", "cuda"]) {
      const answer = await stand.post(`/v2/${kind}sharedmemory/register`, {});
      const text = `'region name' is necessary to register ${kind} shared memory region`;
      expect([answer.status, errorOf(answer)]).toEqual([400, text]);
    }
  });

  it("takes a name that encodes no text as it is", async () => {
    expect(errorOf(await stand.get(`${system}/region/%ff/status`))).toBe(
      "Unable to find system shared memory region: '%ff'",
    );
  });

  it("has no memory of GPUs", async () => {
    const register = await stand.post(`${cuda}/region/gpu/register`, {});
    const text = "failed to register CUDA shared memory region: 'gpu', GPUs not supported";
    expect([register.status, errorOf(register)]).toEqual([400, text]);
    expect((await stand.get(`${cuda}/status`)).text).toBe("[]");
    expect(errorOf(await stand.get(`${cuda}/region/gpu/status`))).toBe(
      "Unable to find cuda shared memory region: 'gpu'",
    );
    expect(errorOf(await stand.get(`${cuda}/region/in/status`))).toBe(
      "The region named 'in' is registered as system shared memory, not CUDA shared memory",
    );
    expect((await stand.post(`${cuda}/unregister`)).status).toBe(200);
    expect((await stand.post(`${cuda}/region/in/unregister`)).status).toBe(200);
    expect((await stand.get(`${system}/region/in/status`)).status).toBe(200);
  });
});

describe("shared memory that is not allowed", () => {
  it("cannot be registered, and nothing is found there", async () => {
    const closed = await HttpStand.start();
    try {
      const answer = await closed.post(`${system}/region/in/register`, {
        key: given.key,
        byte_size: 1,
      });
      expect(answer.status).toBe(501);
      expect(errorOf(answer)).toContain("Client shared memory is disabled");
      expect((await closed.get(`${system}/status`)).text).toBe("[]");
      expect((await closed.post(`${system}/unregister`)).status).toBe(200);
      const unknown = await closed.infer("batch", { inputs: [{ ...input, parameters: source }] });
      expect([unknown.status, errorOf(unknown)]).toEqual([
        404,
        "Unable to find shared memory region: 'in'",
      ]);
    } finally {
      await closed.stop();
    }
  });
});
