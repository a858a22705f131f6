import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { messages } from "../../repository/proto-files.ts";
import { eventually } from "../helpers/eventually.ts";
import { collect, type Fields } from "../helpers/grpc-client.ts";
import { floats, GrpcStand } from "./grpc/grpc-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";
import { HeldModel, type LimitStand, openLimits } from "./limit-stand.ts";

let desk: KeyDesk;
let grpc: GrpcStand;
let held: HeldModel;
let limits: LimitStand;
beforeEach(async () => {
  desk = await openKeyDesk();
});
afterEach(async () => {
  await grpc.stop();
  desk.close();
});

async function start(...given: Parameters<typeof openLimits>): Promise<void> {
  limits = openLimits(...given);
  grpc = await GrpcStand.start({ access: desk.access, admission: limits.admission });
  held = new HeldModel(grpc.engine);
}

function shown(key: string): Metadata {
  const metadata = new Metadata();
  metadata.set("x-api-key", key);
  return metadata;
}

/** By the lane for ordinary calls, and by grpc-js, to which calls with a deadline go. */
const ways: readonly (readonly [way: string, deadline: { readonly deadline?: number }])[] = [
  ["the lane for ordinary calls", {}],
  ["grpc-js", { deadline: 20_000 }],
];

function ask(
  key: string,
  model: string,
  deadline: { readonly deadline?: number },
): Promise<Fields> {
  return grpc.ask("ModelInfer", floats([1], { modelName: model }), {
    metadata: shown(key),
    ...deadline,
  });
}

async function failure(call: Promise<Fields>): Promise<ServiceError> {
  return call.then(
    () => Promise.reject(new Error("it was answered")),
    (error: ServiceError) => error,
  );
}

/** Reads google.rpc.Status with a google.rpc.RetryInfo, by their numbers. */
function retryInfo(error: ServiceError): readonly unknown[] {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) throw new Error("no details");
  const root = messages().root;
  if (!root.nested?.["retrytest"]) {
    root.define("retrytest").addJSON({
      Duration: { fields: { seconds: { type: "int64", id: 1 }, nanos: { type: "int32", id: 2 } } },
      RetryInfo: { fields: { retryDelay: { type: "Duration", id: 1 } } },
      Any: { fields: { typeUrl: { type: "string", id: 1 }, value: { type: "bytes", id: 2 } } },
      Status: {
        fields: {
          code: { type: "int32", id: 1 },
          message: { type: "string", id: 2 },
          details: { rule: "repeated", type: "Any", id: 3 },
        },
      },
    });
  }
  const [statusType, infoType] = ["retrytest.Status", "retrytest.RetryInfo"].map((name) =>
    root.lookupType(name),
  );
  const read = statusType?.toObject(statusType.decode(bytes), { longs: Number });
  const [detail] = read?.["details"] ?? [];
  const info = infoType?.toObject(infoType.decode(detail.value), { longs: Number, defaults: true });
  return [read?.["code"], read?.["message"], detail.typeUrl, info?.["retryDelay"]];
}

describe("limits over gRPC", () => {
  it.each(ways)(
    "refuse by %s with RESOURCE_EXHAUSTED, and say when to come again",
    async (_, way) => {
      await start({});
      const key = await desk.key({ name: "ci", limits: { dailyItems: 1 } });
      await ask(key, "echo_FP32", way);
      const error = await failure(ask(key, "echo_FP32", way));
      expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
      expect(error.details).toBe("items a day of key 'ci': given one more, expected at most 1");
      const seconds = Number(error.metadata.get("retry-after")[0]);
      expect(seconds).toBeGreaterThan(0);
      expect(retryInfo(error)).toEqual([
        status.RESOURCE_EXHAUSTED,
        error.details,
        "type.googleapis.com/google.rpc.RetryInfo",
        { seconds, nanos: 0 },
      ]);
      expect(limits.refused()).toEqual([["key-daily-items default", 1]]);
    },
  );

  it.each(ways)("bound what is under way by %s", async (_, way) => {
    await start({}, { maxModelRequests: 2 });
    const key = await desk.key({ limits: { inFlight: 1 } });
    const other = await desk.key();
    const first = ask(key, "held", way);
    await eventually(() => expect(held.waiting).toBe(1));
    expect((await failure(ask(key, "held", way))).code).toBe(status.RESOURCE_EXHAUSTED);
    const second = ask(other, "held", way);
    await eventually(() => expect(held.waiting).toBe(2));
    const full = await failure(ask(other, "held", way));
    expect([full.code, full.details]).toEqual([
      status.UNAVAILABLE,
      "requests in flight for model 'held': given one more, expected at most 2",
    ]);
    expect(retryInfo(full).at(-1)).toEqual({ seconds: 5, nanos: 0 });
    held.release();
    await Promise.all([first, second]);
    expect([limits.admission.requests, limits.admission.bytes]).toEqual([0, 0]);
  });

  it.each(ways)("hold no more bytes than there is room for by %s", async (_, way) => {
    await start({}, { maxBytes: 10 });
    const error = await failure(ask(await desk.key(), "echo_FP32", way));
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(error.details).toContain("request bytes in flight: given ");
    expect(error.metadata.get("retry-after")).toEqual([]);
  });

  it("refuse a message for which there is no room while it is on its way", async () => {
    await start({}, { maxBytes: 300_000 });
    const headers = {
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
      "x-api-key": await desk.key(),
    };
    const session = connect(`http://127.0.0.1:${grpc.port}`);
    const send = (length: number): ClientHttp2Stream => {
      const stream = session.request(headers);
      const piece = Buffer.alloc(1000);
      piece.writeUInt32BE(length, 1);
      stream.write(piece);
      return stream;
    };
    const first = send(200_000);
    await eventually(() => expect(limits.admission.bytes).toBe(200_005));
    const second = send(200_000);
    const [answer] = await once(second, "response");
    expect(answer).toMatchObject({ "grpc-status": String(status.UNAVAILABLE), "retry-after": "5" });
    // What still comes of it is nothing to anybody.
    second.end(Buffer.alloc(199_005));
    expect(limits.admission.bytes).toBe(200_005);
    first.close();
    await eventually(() => expect(limits.admission.bytes).toBe(0));
    session.destroy();
    await ask(await desk.key(), "echo_FP32", {});
  });

  it("hold for each request of a stream, which goes on", async () => {
    await start({});
    const key = await desk.key({ name: "ci", limits: { dailyItems: 2 } });
    const stream = grpc.stream(shown(key));
    for (let i = 0; i < 4; i++) stream.write(floats([i]));
    stream.end();
    const answers = await collect(stream);
    const refused = "items a day of key 'ci': given one more, expected at most 2";
    expect(answers.map(({ errorMessage }) => errorMessage ?? "")).toEqual([
      "",
      "",
      refused,
      refused,
    ]);
    expect(limits.admission.requests).toBe(0);
  });

  it("end a stream that wants to end with errors, with when to come again", async () => {
    await start({});
    const metadata = shown(await desk.key({ limits: { dailyItems: 1 } }));
    metadata.set("triton_grpc_error", "true");
    const stream = grpc.stream(metadata);
    stream.write(floats([1]));
    stream.write(floats([1]));
    const error: ServiceError = await collect(stream).then(
      () => Promise.reject(new Error("it was answered")),
      (cause: ServiceError) => cause,
    );
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(retryInfo(error)[0]).toBe(status.RESOURCE_EXHAUSTED);
  });
});
