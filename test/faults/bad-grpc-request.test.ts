import { Metadata, status } from "@grpc/grpc-js";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { encode, type Fields, GrpcClient } from "../helpers/grpc-client.ts";
import { callWithBytes, grpcFrame } from "../helpers/grpc-frames.ts";
import { scrape } from "../helpers/scrape.ts";
import { serving } from "../helpers/serving.ts";
import { writeEchoModels } from "./echo-models.ts";

const megabyte = 2 ** 20;
const unreadable = "Unable to parse request";

const goodInput = { name: "x", datatype: "FP32", shape: [2] };

function request(input: Fields = {}, more: Fields = {}): Fields {
  return {
    modelName: "list",
    inputs: [{ ...goodInput, ...input }],
    rawInputContents: [Buffer.alloc(8)],
    ...more,
  };
}

const good = encode("ModelInferRequest", request());

function noData(more: Fields): Fields {
  return { ...more, rawInputContents: [Buffer.alloc(0)] };
}

type BadMessage = readonly [title: string, message: Fields | Buffer, code: status, text: string];

const badMessages: readonly BadMessage[] = [
  ["bytes that are no message", Buffer.alloc(100, 0xff), status.INTERNAL, unreadable],
  ["zeros", Buffer.alloc(1000), status.INTERNAL, unreadable],
  ["half of a message", good.subarray(0, -3), status.INTERNAL, unreadable],
  [
    "a field longer than the message",
    Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]),
    status.INTERNAL,
    unreadable,
  ],
  ["100,000 nested groups", Buffer.alloc(100_000, 0x53), status.INTERNAL, unreadable],
  ["a dimension below 0", request({ shape: [-2] }), status.INVALID_ARGUMENT, "got [-2]"],
  [
    "an element count beyond 2^53",
    request({ shape: [2 ** 31 - 1, 2 ** 31 - 1] }, noData({ modelName: "grid" })),
    status.INVALID_ARGUMENT,
    "more elements than any tensor can hold",
  ],
  [
    "an element count of 0 with a dimension of 2^63 - 1",
    request({ shape: [0, "9223372036854775807"] }, noData({ modelName: "grid" })),
    status.INVALID_ARGUMENT,
    "integers from 0 to 2^31-1",
  ],
  ["too few bytes", request({ shape: [3] }), status.INVALID_ARGUMENT, "Expected 12, got 8"],
  [
    "no bytes",
    request({}, { rawInputContents: [] }),
    status.INVALID_ARGUMENT,
    "unable to find data",
  ],
  [
    "an input twice",
    request(
      {},
      {
        inputs: [goodInput, goodInput],
        rawInputContents: [Buffer.alloc(8), Buffer.alloc(8)],
      },
    ),
    status.INVALID_ARGUMENT,
    "input 'x' already exists",
  ],
  [
    "thousands of inputs",
    request({}, { inputs: Array.from({ length: 20_000 }, () => ({})) }),
    status.INVALID_ARGUMENT,
    "given more than 16384 inputs",
  ],
  [
    "a string length beyond the data",
    request(
      { datatype: "BYTES", shape: [1] },
      { modelName: "words", rawInputContents: [Buffer.from([255, 255, 255, 255, 65])] },
    ),
    status.INVALID_ARGUMENT,
    "string of length 4294967295 but only 1 bytes",
  ],
  ["a model named ../etc", request({}, { modelName: "../etc" }), status.NOT_FOUND, "'../etc'"],
  ["a name of 10 kB", request({}, { modelName: "n".repeat(10_000) }), status.NOT_FOUND, "'nnn"],
  ["a name with NUL", request({}, { modelName: "list\0" }), status.NOT_FOUND, "unknown model"],
  [
    "a version of 10 kB",
    request({}, { modelVersion: "9".repeat(10_000) }),
    status.INVALID_ARGUMENT,
    "model version",
  ],
];

describe("tidepool serve, asked badly over gRPC", () => {
  const running = serving(writeEchoModels);
  const residentBytes = async (): Promise<number> =>
    (await scrape(running.server.metrics)).get("tidepool_process_resident_memory_bytes") ?? NaN;
  const expectServes = async (): Promise<void> => {
    expect(await running.grpc.infer(good)).toMatchObject({ modelName: "list" });
  };

  it.each(badMessages)("refuses %s and says why", async (_, message, code, text) => {
    const refused = running.grpc.infer(message);
    const served = expectServes();
    await expect(refused).rejects.toMatchObject({ code, details: expect.stringContaining(text) });
    await served;
  });

  it("refuses a message to a method off the hot path that it cannot read", async () => {
    const message = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]);
    await expect(running.grpc.ask("ModelConfig", message)).rejects.toMatchObject({
      code: status.INTERNAL,
      details: unreadable,
    });
  });

  it.each([
    ["a frame of 4 GB", grpcFrame(good, { length: 2 ** 32 - 1 }), {}, status.RESOURCE_EXHAUSTED],
    ["a frame that ends early", grpcFrame(good, { length: 2 ** 31 - 1 }), {}, status.UNIMPLEMENTED],
    ["half of a frame's head", Buffer.alloc(2), {}, status.UNIMPLEMENTED],
    ["two messages", Buffer.concat([grpcFrame(good), grpcFrame(good)]), {}, status.UNIMPLEMENTED],
    [
      "a coding that it does not know",
      grpcFrame(good, { flag: 1 }),
      { "grpc-encoding": "br" },
      status.UNIMPLEMENTED,
    ],
    [
      "gzip that is none",
      grpcFrame(good, { flag: 1 }),
      { "grpc-encoding": "gzip" },
      status.INTERNAL,
    ],
    [
      "a gzip bomb",
      grpcFrame(gzipSync(Buffer.alloc(64 * megabyte)), { flag: 1 }),
      { "grpc-encoding": "gzip" },
      status.INTERNAL,
    ],
    ["a timeout that is none", grpcFrame(good), { "grpc-timeout": "soon" }, status.INTERNAL],
  ])("refuses %s", async (_, body, headers: Record<string, string>, code) => {
    expect(await callWithBytes(running.server.grpc, body, headers)).toMatchObject({
      status: code,
      text: expect.stringMatching(/./u),
    });
    await expectServes();
  });

  it("refuses metadata beyond what a call may have, and nobody else notices", async () => {
    const metadata = new Metadata();
    for (let i = 0; i < 5000; i += 1) metadata.add(`key-${i}`, "x".repeat(100));
    const client = new GrpcClient(running.server.grpc);
    await expect(client.infer(good, metadata)).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
    client.close();
    await expectServes();
  });

  it("serves messages of 100 MB, again and again in the same memory", async () => {
    const elements = 25_000_000;
    const large = encode(
      "ModelInferRequest",
      request({ shape: [elements] }, { rawInputContents: [Buffer.alloc(4 * elements, 1)] }),
    );
    const send = async (): Promise<void> => {
      const { rawOutputContents } = await running.grpc.infer(large);
      expect(rawOutputContents[0]).toHaveLength(4 * elements);
    };
    await send();
    const before = await residentBytes();
    for (let i = 0; i < 3; i += 1) await send();
    expect((await residentBytes()) - before).toBeLessThan(400 * megabyte);
  }, 60_000);

  it("keeps no memory of what it refused", async () => {
    const refused = (): Promise<unknown> =>
      Promise.allSettled(badMessages.map(([, message]) => running.grpc.infer(message)));
    for (let i = 0; i < 10; i += 1) await refused();
    const before = await residentBytes();
    for (let i = 0; i < 50; i += 1) await refused();
    expect((await residentBytes()) - before).toBeLessThan(100 * megabyte);
    await expectServes();
    expect(running.server.lines.filter(({ level }) => level !== "info")).toEqual([]);
  }, 60_000);
});
