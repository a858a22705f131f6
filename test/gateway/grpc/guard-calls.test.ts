import { once } from "node:events";
import * as http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newApiKey } from "../../../auth/api-key.ts";
import { encode } from "../../helpers/grpc-client.ts";
import { grpcFrame } from "../../helpers/grpc-frames.ts";
import { type KeyDesk, openKeyDesk } from "../key-desk.ts";
import { floats, GrpcStand } from "./grpc-stand.ts";

let desk: KeyDesk;
let grpc: GrpcStand;
let session: http2.ClientHttp2Session;
let reader: string;
beforeAll(async () => {
  desk = await openKeyDesk();
  grpc = await GrpcStand.start({ access: desk.access });
  session = http2.connect(`http://127.0.0.1:${grpc.port}`);
  await once(session, "connect");
  reader = await desk.key({ scopes: ["read"] });
});
afterAll(async () => {
  session.destroy();
  await grpc.stop();
  desk.close();
});

/** A call of which nothing but the head has been sent. */
function begun(method: string, headers: http2.OutgoingHttpHeaders = {}): http2.ClientHttp2Stream {
  return session.request({
    ":method": "POST",
    ":path": `/inference.GRPCInferenceService/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
}

/** The status in the first headers that come back. */
async function statusOf(stream: http2.ClientHttp2Stream): Promise<number> {
  const [head] = await once(stream, "response");
  return Number(head["grpc-status"]);
}

const methods = [
  "ModelInfer",
  "ModelStreamInfer",
  "RepositoryModelLoad",
  "ServerMetadata",
  "LogSettings",
];

describe("guardCalls", () => {
  it.each(methods)("refuses %s to strangers before they have sent a message", async (method) => {
    expect(await statusOf(begun(method))).toBe(status.UNAUTHENTICATED);
    expect(await statusOf(begun(method, { "grpc-timeout": "60S" }))).toBe(status.UNAUTHENTICATED);
    const wrong = { "x-api-key": newApiKey().text };
    expect(await statusOf(begun(method, wrong))).toBe(status.UNAUTHENTICATED);
  });

  it.each(methods.filter((method) => method !== "ServerMetadata"))(
    "refuses %s to callers without its scope before they have sent a message",
    async (method) => {
      const stream = begun(method, { "x-api-key": reader });
      expect(await statusOf(stream)).toBe(status.PERMISSION_DENIED);
    },
  );

  it.each(methods)("does not take the bytes of a large message of %s", async (method) => {
    const stream = begun(method);
    const mebibyte = Buffer.alloc(2 ** 20);
    let sent = 0;
    const pump = (): void => {
      while (sent < 512 && !stream.closed && !stream.destroyed) {
        sent += 1;
        if (!stream.write(mebibyte)) {
          stream.once("drain", pump);
          return;
        }
      }
    };
    stream.on("error", () => {});
    stream.write(Buffer.from([0, 0x20, 0, 0, 0]));
    pump();
    stream.resume();
    await once(stream, "close");
    // What was on its way: no more than the windows that both sides begin with.
    expect(sent).toBeLessThan(32);
  });

  it("does not decompress for strangers", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20));
    const stream = begun("ModelInfer", { "grpc-encoding": "gzip" });
    stream.end(grpcFrame(bomb, { flag: 1 }));
    expect(await statusOf(stream)).toBe(status.UNAUTHENTICATED);
  });

  it("tells a stranger nothing of whether a message can be read", async () => {
    for (const message of [Buffer.from([0xff, 0xff]), encode("ModelInferRequest", floats([1]))]) {
      const stream = begun("ModelInfer");
      stream.end(grpcFrame(message));
      expect(await statusOf(stream)).toBe(status.UNAUTHENTICATED);
    }
  });

  it("lets in whoever may call, by both ways through the server", async () => {
    const key = await desk.key();
    for (const more of [{}, { "grpc-timeout": "60S" }]) {
      const stream = begun("ModelInfer", { "x-api-key": key, ...more });
      const trailers = once(stream, "trailers");
      stream.resume().end(grpcFrame(encode("ModelInferRequest", floats([1]))));
      const [{ "grpc-status": code }] = await trailers;
      expect(Number(code)).toBe(status.OK);
    }
  });

  it("looks again when the message has come", async () => {
    const key = await desk.key();
    const message = grpcFrame(encode("ModelInferRequest", floats([1])));
    const stream = begun("ModelInfer", { "x-api-key": key });
    stream.write(message.subarray(0, 7));
    await new Promise<void>((resolve) => void session.ping(() => resolve()));
    await desk.revoke(key);
    stream.end(message.subarray(7));
    expect(await statusOf(stream)).toBe(status.UNAUTHENTICATED);
  });
});
