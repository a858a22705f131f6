import { once } from "node:events";
import * as http2 from "node:http2";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelInferPath } from "../../../gateway/grpc/inference.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { encode } from "../../helpers/grpc-client.ts";
import { grpcFrame } from "../../helpers/grpc-frames.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { floats, GrpcStand } from "./grpc-stand.ts";

interface Ending {
  readonly body: Buffer;
  readonly status: unknown;
  /** Undefined for "OK", which nobody needs to be told. */
  readonly text: unknown;
  /** Only grpc-js tells the usual encoding. */
  readonly encoding: unknown;
}

/** One call whose request arrives in exactly these pieces. */
async function call(
  session: http2.ClientHttp2Session,
  pieces: readonly Buffer[],
  headers: http2.OutgoingHttpHeaders = {},
): Promise<Ending> {
  const stream = session.request({
    ":method": "POST",
    ":path": modelInferPath,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let head: http2.IncomingHttpHeaders = {};
  let trailers: http2.IncomingHttpHeaders = {};
  const body: Buffer[] = [];
  stream.on("response", (given) => (head = given));
  stream.on("trailers", (given) => (trailers = given));
  stream.on("data", (chunk: Buffer) => body.push(chunk));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  stream.on("close", resolve).on("error", reject);
  for (const piece of pieces) {
    stream.write(piece);
    await answeredPing(session);
  }
  stream.end();
  await promise;
  const ending = { ...head, ...trailers };
  const text = ending["grpc-message"];
  return {
    body: Buffer.concat(body),
    status: ending["grpc-status"] ?? ending[":status"],
    text: text === "OK" ? undefined : text,
    encoding: head["grpc-encoding"],
  };
}

/** What was sent before it has arrived when it resolves. */
function answeredPing(session: http2.ClientHttp2Session): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  session.ping((error) => (error ? reject(error) : resolve()));
  return promise;
}

describe("OrdinaryCall", () => {
  const message = encode("ModelInferRequest", floats([1, 2]));
  const whole = grpcFrame(message);
  const unknown = encode("ModelInferRequest", floats([1], { modelName: "modèle %" }));
  let [fast, slow]: GrpcStand[] = [];
  let toFast: http2.ClientHttp2Session;
  let toSlow: http2.ClientHttp2Session;
  beforeAll(async () => {
    fast = await GrpcStand.start();
    slow = await GrpcStand.start({ headerForwardPattern: /^never$/u });
    toFast = http2.connect(`http://127.0.0.1:${fast.port}`);
    toSlow = http2.connect(`http://127.0.0.1:${slow.port}`);
    await Promise.all([once(toFast, "connect"), once(toSlow, "connect")]);
  });
  afterAll(async () => {
    toFast.destroy();
    toSlow.destroy();
    await Promise.all([fast?.stop(), slow?.stop()]);
  });

  it("takes an ordinary call past grpc-js, which would name the answer's encoding", async () => {
    const answers = await Promise.all([call(toFast, [whole]), call(toSlow, [whole])]);
    expect(answers.map(({ encoding }) => encoding)).toEqual([undefined, "identity"]);
  });

  it.each<[string, Buffer[], http2.OutgoingHttpHeaders?]>([
    ["a message in one piece", [whole]],
    ["no message", []],
    ["a message without a byte", [grpcFrame(Buffer.alloc(0))]],
    ["a message for an unknown model", [grpcFrame(unknown)]],
    ["garbage", [grpcFrame(Buffer.from([0xff, 0xff]))]],
    ["a message in two pieces", [whole.subarray(0, 9), whole.subarray(9)]],
    ["a message that is cut within its prefix", [whole.subarray(0, 3), whole.subarray(3)]],
    ["two messages in one piece", [Buffer.concat([whole, whole])]],
    ["two messages in two pieces", [whole, whole]],
    ["a message and the beginning of another", [whole, whole.subarray(0, 7)]],
    ["a message that ends early", [grpcFrame(message, { length: message.length + 1 })]],
    ["a message that calls itself compressed", [grpcFrame(message, { flag: 1 })]],
    ["an encoding that is unknown", [grpcFrame(message, { flag: 1 })], { "grpc-encoding": "br" }],
    ["a timeout that is none", [whole], { "grpc-timeout": "soon" }],
    ["another content type", [whole], { "content-type": "application/json" }],
    ["a method that is unknown", [whole], { ":path": "/inference.GRPCInferenceService/Dream" }],
  ])("answers %s as grpc-js does", async (_what, pieces, headers) => {
    const [ours, theirs] = await Promise.all([
      call(toFast, pieces, headers),
      call(toSlow, pieces, headers),
    ]);
    expect(ours.status).toBeDefined();
    expect({ ...ours, encoding: undefined }).toEqual({ ...theirs, encoding: undefined });
  });

  it("refuses a call without a message in one word, however it ends", async () => {
    const endings = await Promise.all(
      [toFast, toSlow].flatMap((to) => [call(to, []), call(to, [Buffer.alloc(0)])]),
    );
    const refusal = { status: String(status.UNIMPLEMENTED), text: endings[0]?.text };
    expect(endings.map(({ status: code, text }) => ({ status: code, text }))).toEqual(
      endings.map(() => refusal),
    );
    expect(String(refusal.text)).toContain("Received%20no%20request%20message");
  });

  it("sends a large answer as fast as the client takes it, and lives on when the client leaves amid it", async () => {
    const stand = await GrpcStand.start();
    const values = Buffer.alloc(8_000_000, 1);
    const config = {
      input: [modelInput("INPUT", "TYPE_FP32", [-1, -1])],
      output: [modelOutput("OUTPUT", "TYPE_FP32", [-1, -1])],
    };
    stand.engine.add(servedModel("grows", config), (request) => {
      const answer = echo(request);
      return [{ ...answer, outputs: answer.outputs.map((one) => ({ ...one, bytes: values })) }];
    });
    const bytes = encode("ModelInferRequest", floats([1], { modelName: "grows" }));
    const session = http2.connect(`http://127.0.0.1:${stand.port}`);
    const leaving = session.request({
      ":method": "POST",
      ":path": modelInferPath,
      "content-type": "application/grpc",
    });
    leaving.once("data", () => leaving.close(http2.constants.NGHTTP2_CANCEL));
    leaving.end(grpcFrame(bytes));
    await new Promise((resolve) => leaving.on("close", resolve));
    session.destroy();
    const response = await stand.infer(bytes);
    expect(values.equals(response["rawOutputContents"][0])).toBe(true);
    await stand.stop();
  });
});
