import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { deflateSync, gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Call } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { binaryInfer, errorOf } from "../../helpers/http-client.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

const limit = 2 ** 20;
const input = { name: "IN0", shape: [1, 4], datatype: "FP32", data: [1, 2, 3, 4] };
const request = { id: "7", inputs: [input] };
const answered =
  '{"id":"7","model_name":"batch","model_version":"1","outputs":[' +
  '{"name":"OUT0","datatype":"FP32","shape":[1,4],"data":[1.0,2.0,3.0,4.0]}]}';

let stand: HttpStand;
/** The call of the request to "slow" that runs; it ends when the call is cancelled. */
let slowCall: PromiseWithResolvers<Call>;

beforeAll(async () => {
  stand = await HttpStand.start({ maxInputBytes: limit, headerForwardPattern: /^(my|triton_)/ });
  const tensors = {
    input: [modelInput("IN0", "TYPE_FP32", [-1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [-1])],
  };
  stand.engine.add(servedModel("slow", tensors), async function* (given, call) {
    slowCall.resolve(call);
    await once(call.signal, "abort");
    yield echo(given);
  });
  stand.engine.add(servedModel("broken", tensors), () => {
    throw new TypeError("/secret/path");
  });
  stand.engine.add(servedModel("busy", tensors), () => {
    throw new InferenceError(StatusCode.Unavailable, "Exceeds maximum queue size");
  });
});
afterAll(() => stand.stop());

/** Sends raw bytes on a connection of its own. */
async function raw(text: string): Promise<Socket> {
  const socket = connect(stand.server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

/** The head of a request that waits to be told to go on. */
function askingFirst(length: number): string {
  return (
    "POST /v2/models/batch/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
    `Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`
  );
}

async function untilClosed(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

describe("infer over HTTP", () => {
  it("answers JSON with JSON", async () => {
    const answer = await stand.infer("batch", request);
    expect(answer.text).toBe(answered);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(answered.length),
    });
  });

  it("answers binary data with binary data, and says where it begins", async () => {
    const tail = Buffer.from(new Float32Array([1, 2]).buffer);
    const tensor = {
      name: "IN0",
      shape: [2],
      datatype: "FP32",
      parameters: { binary_data_size: 8 },
    };
    const outputs = [{ name: "OUT0", parameters: { binary_data: true } }];
    const answer = await stand.infer(
      "id_fp32",
      ...binaryInfer({ inputs: [tensor], outputs }, tail),
    );
    const cut = Number(answer.headers["inference-header-content-length"]);
    expect(answer.headers["content-type"]).toBe("application/octet-stream");
    expect(JSON.parse(answer.text.slice(0, cut)).outputs[0].parameters).toEqual({
      binary_data_size: 8,
    });
    expect(answer.bytes.subarray(cut)).toEqual(tail);
  });

  it("takes a body that comes in many small pieces", async () => {
    const body = JSON.stringify(request);
    const socket = await raw(
      "POST /v2/models/batch/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for (const char of body) socket.write(`1\r\n${char}\r\n`);
    socket.write("0\r\n\r\n");
    expect(await untilClosed(socket)).toContain(answered);
  });

  it("carries a large tensor unchanged", async () => {
    const tail = Buffer.alloc(limit - 1000).map((_, i) => i % 251);
    const size = tail.length;
    const tensor = {
      name: "IN0",
      shape: [size],
      datatype: "UINT8",
      parameters: { binary_data_size: size },
    };
    const head = { inputs: [tensor], parameters: { binary_data_output: true } };
    const answer = await stand.infer("id_uint8", ...binaryInfer(head, tail));
    expect(answer.bytes.subarray(-size).equals(tail)).toBe(true);
  });

  it("serves versions in the path", async () => {
    expect((await stand.infer("batch/versions/1", request)).status).toBe(200);
    const other = await stand.infer("batch/versions/2", request);
    expect(other.status).toBe(404);
    expect(errorOf(other)).toBe("Request for unknown model: 'batch' version 2 is not found");
    expect((await stand.infer("batch/versions/x", request)).status).toBe(404);
  });

  it("takes a body without JSON as the only input", async () => {
    const header = { "Inference-Header-Content-Length": "0" };
    const body = Buffer.from(new Float32Array([5, 6]).buffer);
    const answer = await stand.infer("id_fp32", body, header);
    expect(answer.text).toContain('"shape":[2],"parameters":{"binary_data_size":8}');
    const two = await stand.infer("pair", body, header);
    expect(two.status).toBe(400);
    expect(errorOf(two)).toContain("Raw request must only have 1 input (found 1)");
  });

  it.each([
    ["nothing", 404, "Request for unknown model: 'nothing' is not found"],
    ["decoupled", 501, "HTTP end point doesn't support models with decoupled transaction policy"],
    ["busy", 503, "Exceeds maximum queue size"],
    ["broken", 500, "internal error; the server's log has the cause"],
  ])("answers a request to '%s' with %i", async (model, status, text) => {
    const answer = await stand.infer(model, { inputs: [{ ...input, shape: [4] }] });
    expect(answer.status).toBe(status);
    expect(errorOf(answer)).toBe(text);
  });

  it("writes the cause of an internal error to the log only", async () => {
    stand.log.errors.length = 0;
    await stand.infer("broken", { inputs: [{ ...input, shape: [4] }] });
    expect(stand.log.errors).toEqual([
      [
        expect.any(String),
        expect.objectContaining({ model: "broken", err: expect.any(TypeError) }),
      ],
    ]);
  });

  it("answers JSON that is none with 500, as the reference does", async () => {
    const answer = await stand.infer("batch", "{");
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toBe(
      "failed to parse the request JSON buffer: Missing a name for object member. at 1",
    );
  });

  it("makes parameters of the headers that the pattern finds", async () => {
    const answer = await stand.infer("batch", request, { "my-header": "h", other: "o" });
    expect(JSON.parse(answer.text).parameters).toEqual({ "my-header": "h" });
    const reserved = await stand.infer("batch", request, { triton_x: "1" });
    expect(errorOf(reserved)).toBe(
      "Header 'triton_x' is reserved for Triton usage and cannot be forwarded.",
    );
  });

  it.each([
    ["gzip", gzipSync, gunzipSync],
    ["deflate", deflateSync, inflateSync],
  ])("takes and gives %s", async (coding, pack, unpack) => {
    const headers = { "Content-Encoding": coding, "Accept-Encoding": coding };
    const answer = await stand.infer("batch", pack(JSON.stringify(request)), headers);
    expect(answer.headers["content-encoding"]).toBe(coding);
    expect(answer.headers["content-length"]).toBe(String(answer.bytes.length));
    expect(unpack(answer.bytes).toString()).toBe(answered);
  });

  it("refuses other codings, and compressed bodies that are broken", async () => {
    const other = await stand.infer("batch", request, { "Content-Encoding": "br" });
    expect(other.status).toBe(501);
    expect(errorOf(other)).toBe("Unsupported compression type");
    expect(other.headers["accept-encoding"]).toBe("gzip, deflate");
    const cut = gzipSync(JSON.stringify(request)).subarray(0, -9);
    const broken = await stand.infer("batch", cut, { "Content-Encoding": "gzip" });
    expect(broken.status).toBe(400);
    expect(errorOf(broken)).toContain("it is not valid gzip data");
  });

  it("refuses a body over the limit: announced, in pieces, or after decompression", async () => {
    const flag = "Use --http-max-input-size to increase the limit.";
    const announced = await stand.infer("batch", Buffer.alloc(limit + 1));
    expect(announced.status).toBe(400);
    expect(errorOf(announced)).toBe(
      `request size of ${limit + 1} bytes exceeds the maximum allowed input size of ${limit} bytes. ${flag}`,
    );
    const chunked = { "Transfer-Encoding": "chunked" };
    expect(errorOf(await stand.infer("batch", Buffer.alloc(limit + 9), chunked))).toContain(flag);
    const bomb = gzipSync(Buffer.alloc(64 * limit));
    expect(bomb.length).toBeLessThan(limit);
    expect(errorOf(await stand.infer("batch", bomb, { "Content-Encoding": "gzip" }))).toContain(
      flag,
    );
  });

  it("tells who asks first to go on, but not for a body that it would refuse", async () => {
    const body = JSON.stringify(request);
    const socket = await raw(askingFirst(body.length));
    const [first] = await once(socket, "data");
    expect(String(first)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write(body);
    expect(await untilClosed(socket)).toContain(answered);
    const refused = await untilClosed(await raw(askingFirst(limit + 1)));
    expect(refused).toMatch(/^HTTP\/1.1 400 Bad Request/);
  });

  it("cancels the call of a client that hangs up", async () => {
    slowCall = Promise.withResolvers();
    const body = JSON.stringify({ inputs: [{ ...input, shape: [4] }] });
    const socket = await raw(
      `POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const call = await slowCall.promise;
    expect(call.cancelled).toBeUndefined();
    socket.destroy();
    await once(call.signal, "abort");
    expect(call.cancelled?.code).toBe(StatusCode.Cancelled);
  });

  it("survives a client that goes away in the middle of its body", async () => {
    const socket = await raw(
      "POST /v2/models/batch/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
    );
    socket.destroy();
    await once(socket, "close");
    expect((await stand.infer("batch", request)).text).toBe(answered);
  });
});
