import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { anonymousCaller } from "../../auth/caller.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import { eventually } from "../helpers/eventually.ts";
import { echo, type MemoryEngine } from "../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { encode } from "../helpers/grpc-client.ts";
import { floats, GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";
import { type LimitStand, openLimits } from "./limit-stand.ts";

/** Equal in every run. */
function dice(): () => number {
  let state = 42;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** A model that answers after up to five milliseconds, or fails, and does not mind who hangs up. */
function addMoody(engine: MemoryEngine, random: () => number): void {
  const config = {
    maxBatchSize: 8,
    input: [modelInput("INPUT", "TYPE_FP32", [-1])],
    output: [modelOutput("OUTPUT", "TYPE_FP32", [-1])],
  };
  engine.add(servedModel("moody", config), async function* (request) {
    const mood = random();
    await sleep(5 * mood);
    if (mood < 0.2) throw new Error("not today");
    yield echo(request);
  });
}

const same = (bytes: Buffer): Buffer => bytes;

const json = JSON.stringify({
  inputs: [{ name: "INPUT", datatype: "FP32", shape: [1, 2], data: [1, 2] }],
});
const heads = ["", "X-Other: 1\r\n", "Prefer: respond-async\r\n", "Accept: text/event-stream\r\n"];

async function expectNothing({ admission }: LimitStand): Promise<void> {
  expect([admission.requests, admission.bytes]).toEqual([0, 0]);
  const call = new Call(anonymous, 0);
  const next = await admission.enter({ caller: anonymousCaller, call, model: "", bytes: 0 });
  next.release();
  expect(next.quota?.left).toContain('"tenant-in-flight";r=8');
}

describe("permits", () => {
  it("come back from thousands of HTTP calls that end at any moment", async () => {
    const random = dice();
    const limits = openLimits(
      { eachTenant: { inFlight: 8, itemsPerSecond: 500 } },
      { maxBytes: 2000 },
    );
    const http = await HttpStand.start({ admission: limits.admission });
    addMoody(http.engine, random);
    const { hostname, port } = new URL(http.origin);
    const one = async (): Promise<void> => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      socket.resume();
      const model = random() < 0.1 ? "nobody" : "moody";
      const head = heads[Math.floor(random() * heads.length)] ?? "";
      const text = `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: x\r\n${head}Content-Length: ${json.length}\r\n\r\n${json}`;
      // Some stop amid the request.
      socket.write(random() < 0.2 ? text.slice(0, Math.floor(random() * text.length)) : text);
      await Promise.race([once(socket, "data"), sleep(random() * 30)]);
      socket.destroy();
    };
    const workers = Array.from({ length: 40 }, async () => {
      for (let i = 0; i < 75; i++) await one().catch(() => {});
    });
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, limits.admission.requests)), 1);
    await Promise.all(workers);
    clearInterval(watch);
    await eventually(() => expectNothing(limits));
    expect(most).toBeGreaterThan(0);
    await http.stop();
  }, 60_000);

  it("come back from thousands of gRPC calls that are cancelled at any moment", async () => {
    const random = dice();
    const limits = openLimits({ eachTenant: { inFlight: 8 } }, { maxBytes: 2000 });
    const grpc = await GrpcStand.start({ admission: limits.admission });
    addMoody(grpc.engine, random);
    const message = encode("ModelInferRequest", floats([1], { modelName: "moody" }));
    const path = "/inference.GRPCInferenceService/ModelInfer";
    const unary = async (): Promise<void> => {
      const options = random() < 0.3 ? { deadline: Date.now() + 8 * random() } : {};
      const ended = Promise.withResolvers<void>();
      const call = grpc.client.makeUnaryRequest(path, same, same, message, options, () =>
        ended.resolve(),
      );
      await Promise.race([ended.promise, sleep(random() * 6)]);
      call.cancel();
      await ended.promise;
    };
    const stream = async (): Promise<void> => {
      const duplex = grpc.stream();
      duplex.on("error", () => {});
      duplex.resume();
      for (let i = 0; i < 5; i++) duplex.write(message);
      await sleep(random() * 10);
      duplex.cancel();
    };
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, limits.admission.requests)), 1);
    const workers = Array.from({ length: 40 }, async () => {
      for (let i = 0; i < 40; i++) await (random() < 0.2 ? stream() : unary());
    });
    await Promise.all(workers);
    clearInterval(watch);
    await eventually(() => expectNothing(limits));
    expect(most).toBeGreaterThan(0);
    await grpc.stop();
  }, 60_000);
});
