import { Metadata, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { scopes } from "../../auth/scope.ts";
import { grpcNeeds, methodNeed } from "../../gateway/policy.ts";
import { collect } from "../helpers/grpc-client.ts";
import { eventually } from "../helpers/eventually.ts";
import { echo } from "../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { floats, GrpcStand } from "./grpc/grpc-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";

let desk: KeyDesk;
let grpc: GrpcStand;
beforeEach(async () => {
  desk = await openKeyDesk();
  grpc = await GrpcStand.start({ access: desk.access });
});
afterEach(async () => {
  await grpc.stop();
  desk.close();
});

const methods = Object.entries(grpcNeeds);

function shown(key?: string, header = "x-api-key"): Metadata {
  const metadata = new Metadata();
  if (key !== undefined) metadata.set(header, key);
  return metadata;
}

/** Messages that name a model, which their methods spell in two ways; the others have no such field. */
function about(method: string, model: string): object {
  if (model === "" || method === "Check") return {};
  if (/^(?:ModelInfer|Repository(?!Index)|Trace)/u.test(method)) return { modelName: model };
  return method.startsWith("Model") ? { name: model } : {};
}

/** The status that a call ends with. */
async function statusOf(method: string, metadata = new Metadata(), model = ""): Promise<unknown> {
  try {
    if (method === "ModelStreamInfer") {
      const stream = grpc.stream(metadata);
      stream.end();
      await collect(stream);
    } else if (method === "Watch") {
      const call = grpc.client.makeServerStreamRequest(
        "/grpc.health.v1.Health/Watch",
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.alloc(0),
        metadata,
      );
      for await (const _ of call) break;
    } else {
      const path = method === "Check" ? "grpc.health.v1.Health/Check" : method;
      await grpc.ask(path, about(method, model), { metadata, deadline: 5000 });
    }
    return status.OK;
  } catch (error) {
    if (error instanceof Error && "code" in error) return error.code;
    throw error;
  }
}

/** By the fast lane, and by grpc-js, to which calls with a deadline go. */
async function inferStatuses(
  metadata: Metadata,
  modelName = "echo_FP32",
): Promise<readonly unknown[]> {
  const request = floats([1], { modelName });
  const calls = [
    grpc.infer(request, metadata),
    grpc.ask("ModelInfer", request, { metadata, deadline: 10_000 }),
  ];
  const ended = await Promise.allSettled(calls);
  return ended.map((one) => (one.status === "fulfilled" ? status.OK : one.reason.code));
}

function both(code: status): readonly status[] {
  return [code, code];
}

describe("policy over gRPC", () => {
  it("asks for a key in every method but those about health", async () => {
    const wrong = shown(newApiKey().text);
    for (const [method, need] of methods) {
      const refused = need === "health" ? status.OK : status.UNAUTHENTICATED;
      expect([method, await statusOf(method)]).toEqual([method, refused]);
      expect([method, await statusOf(method, wrong)]).toEqual([method, refused]);
    }
  });

  it.each(scopes)("lets the holder of %s do that and nothing else", async (scope) => {
    const metadata = shown(await desk.key({ scopes: [scope] }));
    for (const [method, need] of methods) {
      const code = await statusOf(method, metadata);
      const may = need === scope || need === "health";
      expect([method, code === status.PERMISSION_DENIED]).toEqual([method, !may]);
      expect(code).not.toBe(status.UNAUTHENTICATED);
    }
  });

  it("keeps other models from a key, whether they exist or not", async () => {
    const metadata = shown(await desk.key({ scopes: [...scopes], models: ["echo_INT*"] }));
    const ofModel = methods.filter(([method]) => Object.keys(about(method, "m")).length > 0);
    const unary = ofModel.filter(([method]) => method !== "ModelStreamInfer");
    expect(unary.length).toBeGreaterThan(7);
    for (const [method] of unary) {
      for (const model of ["echo_FP32", "no-such-model"]) {
        const code = await statusOf(method, metadata, model);
        expect([method, model, code]).toEqual([method, model, status.PERMISSION_DENIED]);
      }
      expect(await statusOf(method, metadata, "echo_INT8")).not.toBe(status.PERMISSION_DENIED);
    }
  });

  it("lists only what a key may use", async () => {
    const metadata = shown(await desk.key({ models: ["echo_INT*"] }));
    const { models } = await grpc.ask("RepositoryIndex", {}, { metadata });
    const names = models.map(({ name }: { name: string }) => name);
    expect(names.toSorted()).toEqual(["echo_INT64", "echo_INT8"]);
  });

  it("takes a key as a bearer, and none in other metadata or twice", async () => {
    const key = await desk.key();
    const bearer = shown(`Bearer ${key}`, "authorization");
    expect(await statusOf("ServerMetadata", bearer)).toBe(status.OK);
    expect(await statusOf("ServerMetadata", shown(key, "api-key"))).toBe(status.UNAUTHENTICATED);
    const twice = shown(key);
    twice.add("x-api-key", key);
    expect(await statusOf("ServerMetadata", twice)).toBe(status.UNAUTHENTICATED);
  });

  it("asks for a key about health, too, where that is wanted", async () => {
    await grpc.stop();
    desk.close();
    desk = await openKeyDesk(false);
    grpc = await GrpcStand.start({ access: desk.access });
    const key = shown(await desk.key({ scopes: ["models"] }));
    for (const [method] of methods.filter(([, need]) => need === "health")) {
      expect([method, await statusOf(method)]).toEqual([method, status.UNAUTHENTICATED]);
      expect([method, await statusOf(method, key)]).toEqual([method, status.OK]);
    }
  });
});

describe("methodNeed", () => {
  it("lets nobody call a method that has no need", () => {
    for (const path of ["/inference.GRPCInferenceService/Else", "/a/constructor", ""])
      expect(() => methodNeed(path)).toThrow("nobody may call it");
  });
});

describe("keyed ModelInfer", () => {
  it("is answered with a key, and refused without, by both ways through the server", async () => {
    const key = await desk.key();
    expect(await inferStatuses(shown(key))).toEqual(both(status.OK));
    expect(await inferStatuses(shown(`Bearer ${key}`, "authorization"))).toEqual(both(status.OK));
    expect(await inferStatuses(new Metadata())).toEqual(both(status.UNAUTHENTICATED));
    expect(await inferStatuses(shown(newApiKey().text))).toEqual(both(status.UNAUTHENTICATED));
    const reader = shown(await desk.key({ scopes: ["read"] }));
    expect(await inferStatuses(reader)).toEqual(both(status.PERMISSION_DENIED));
    const other = shown(await desk.key({ models: ["else"] }));
    expect(await inferStatuses(other)).toEqual(both(status.PERMISSION_DENIED));
    await desk.revoke(key);
    expect(await inferStatuses(shown(key))).toEqual(both(status.UNAUTHENTICATED));
  });

  it("tells the engine who calls", async () => {
    const key = await desk.key({ tenant: "blue" });
    const tenants: string[] = [];
    const config = {
      maxBatchSize: 8,
      input: [modelInput("INPUT", "TYPE_FP32", [-1])],
      output: [modelOutput("OUTPUT", "TYPE_FP32", [-1])],
    };
    grpc.engine.add(servedModel("told", config), (request, { principal }) => {
      tenants.push(principal.tenant);
      return [echo(request)];
    });
    await inferStatuses(shown(key), "told");
    expect(tenants).toEqual(["blue", "blue"]);
  });
});

describe("keyed ModelStreamInfer", () => {
  it("answers for models that the key may use, and goes on after one that it may not", async () => {
    const stream = grpc.stream(shown(await desk.key({ models: ["echo_FP32"] })));
    const first = floats([1]);
    stream.write(first);
    stream.write(floats([1], { modelName: "echo_INT8" }));
    stream.write(first);
    stream.end();
    const answers = await collect(stream);
    expect(answers.map(({ errorMessage }) => errorMessage ?? "")).toEqual([
      "",
      "model 'echo_INT8': the caller has scope infer for other models only",
      "",
    ]);
  });

  it("ends once the key is revoked", async () => {
    const key = await desk.key();
    const stream = grpc.stream(shown(key));
    const answers: unknown[] = [];
    stream.on("data", (answer) => answers.push(answer));
    const ended = new Promise((resolve) => stream.on("error", resolve));
    stream.write(floats([1]));
    await eventually(() => expect(answers).toHaveLength(1));
    await desk.revoke(key);
    stream.write(floats([1]));
    expect(await ended).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(answers).toHaveLength(1);
  });
});
