import { once } from "node:events";
import * as http2 from "node:http2";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { scopes } from "../../auth/scope.ts";
import type { ApiCategory } from "../../gateway/api-category.ts";
import { encode } from "../helpers/grpc-client.ts";
import { grpcFrame } from "../helpers/grpc-frames.ts";
import { echo } from "../helpers/memory-engine.ts";
import { rawStatus } from "../helpers/raw-connection.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { floats, GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";

let desk: KeyDesk;
let http: HttpStand;
/** How often the guarded model has answered. */
let answered: number;
beforeEach(async () => {
  desk = await openKeyDesk();
  answered = 0;
});
afterEach(async () => {
  await http.stop();
  desk.close();
});

async function start(restricted: readonly ApiCategory[] = []): Promise<void> {
  const restrictions = new Map(restricted.map((one) => [one, { key: "X-Key", value: "s" }]));
  http = await HttpStand.start({ access: desk.access, restrictions });
  const config = {
    maxBatchSize: 8,
    input: [modelInput("IN0", "TYPE_FP32", [4])],
    output: [modelOutput("OUT0", "TYPE_FP32", [4])],
  };
  http.engine.add(servedModel("guarded", config), (request) => {
    answered += 1;
    return [echo(request)];
  });
}

interface Target {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

const data = { name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const infer = { method: "POST", body: JSON.stringify({ inputs: [data] }) };
const ofModel: readonly Target[] = [
  { ...infer, path: "/v2/models/guarded/infer" },
  { ...infer, path: "/v2/models/guarded/versions/1/infer" },
  { method: "POST", path: "/v2/repository/models/guarded/load", body: "" },
  { method: "POST", path: "/v2/models/guarded/cache/flush", body: "" },
];
const metadata: Target = { method: "GET", path: "/v2/models/guarded", body: "" };
const logging: Target = { method: "POST", path: "/v2/logging", body: '{"log_verbose_level":3}' };

/** Other spellings that a server might take for the path, in the bytes of latin1. */
function forms(path: string): readonly string[] {
  const [, , third = "", last = ""] = path.split("/");
  const beginning = path.slice(0, 3);
  const rest = path.slice(3);
  const letter = (text: string, code: string): string => rest.replace(text, code + text.slice(1));
  return [
    path,
    `/${path}`,
    `//x${path}`,
    `///${path}`,
    `${path}/`,
    `${path}//`,
    `${path}/.`,
    `/.${path}`,
    `/x/..${path}`,
    path.replaceAll("/", "//"),
    path.replaceAll("/", "/./"),
    path.replaceAll("/", "\\"),
    `${beginning}\\${rest.slice(1)}`,
    path.replaceAll("/", "%2F"),
    path.replaceAll("/", "%2f"),
    path.replaceAll("/", "%252f"),
    path.replaceAll("/", "%5c"),
    path.replaceAll("/", "%c0%af"),
    path.replaceAll("/", "\u00c0\u00af"),
    `/v2/health/live/../..${rest}`,
    `/v2/health/live/%2e%2e/%2e%2e${rest}`,
    `/v2/health/live/..%2f..${rest}`,
    `/v2/health/live/.%00./..${rest}`,
    `/v2/health/live/..;/..${rest}`,
    `/v2/health/ready/\u00c0\u00ae\u00c0\u00ae/..${rest}`,
    `/V2${rest}`,
    path.toUpperCase(),
    beginning + rest.replace(third, third.toUpperCase()),
    beginning + letter(third, `%${third.charCodeAt(0).toString(16)}`),
    beginning + letter(last, `%${(last || third).charCodeAt(0).toString(16)}`),
    beginning + rest.replace("guarded", "%67uarded"),
    beginning + rest.replace("guarded", "%2567uarded"),
    beginning + rest.replace("guarded", "\u00c1\u00a7uarded"),
    beginning + rest.replace("guarded", "guarded%00"),
    beginning + rest.replace("guarded", "pair/../guarded"),
    beginning + rest.replace("guarded", "pair%2f..%2fguarded"),
    `${path}%00`,
    `${path}\u0000`,
    `${path}%20`,
    `${path}%0d%0a`,
    `${path}\t`,
    `${path};/v2/health/live`,
    `${path}?/v2/health/live`,
    `${path}?`,
    `${path}#/v2/health/live`,
    `${path}.json`,
    `http://x${path}`,
    `HTTP://x${path}`,
    `http://x:80${path}`,
    `http://user@x${path}`,
    `http://x/v2/health/live/../..${rest}`,
    `https://x${path}`,
    path.slice(1),
    "*",
  ];
}

/** Headers that send a call another way through the server, or that a proxy in front might heed. */
const variants = [
  "",
  "X-Other: 1\r\n",
  "Expect: 100-continue\r\n",
  "X-HTTP-Method-Override: GET\r\nX-Original-URL: /v2/health/live\r\nX-Rewrite-URL: /v2/health/live\r\n",
];

/** The statuses of one form of a call, sent as it is in each variant. */
async function statusesOf(form: string, target: Target, credentials: string): Promise<number[]> {
  const { method, body } = target;
  const statuses = variants.map(async (more) => {
    const head = `${method} ${form} HTTP/1.1\r\nHost: x\r\n${credentials}${more}`;
    const text = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    return rawStatus(http.origin.slice(7), Buffer.from(text, "latin1"));
  });
  return Promise.all(statuses);
}

/** What came of all forms of the calls: those that were not refused, and what was done. */
async function outcome(targets: readonly Target[], credentials: string): Promise<object> {
  const open: unknown[] = [];
  for (const target of targets) {
    for (const form of forms(target.path)) {
      const statuses = await statusesOf(form, target, credentials);
      if (!statuses.every((code) => code >= 400 && code < 500)) open.push([form, statuses]);
    }
  }
  const { loaded, flushed } = http.engine;
  return { open, answered, loaded, flushed, level: http.log.get().logVerboseLevel };
}

const nothing = { open: [], answered: 0, loaded: [], flushed: [], level: 0 };

describe("another form of a path", () => {
  it("gets nobody further than the path itself, without a key", async () => {
    await start();
    expect(await outcome([...ofModel, metadata, logging], "")).toEqual(nothing);
  }, 60_000);

  it("does not lead to a model that is not for the key", async () => {
    await start();
    const key = await desk.key({ scopes: [...scopes], models: ["pair", "id_*"] });
    expect(await outcome([...ofModel, metadata], `X-API-Key: ${key}\r\n`)).toEqual(nothing);
  }, 60_000);

  it("does not lead to what the key has no scope for", async () => {
    await start();
    const key = await desk.key({ scopes: ["read"] });
    expect(await outcome([...ofModel, logging], `Authorization: Bearer ${key}\r\n`)).toEqual(
      nothing,
    );
  }, 60_000);

  it("does not lead to what is restricted", async () => {
    await start(["inference", "model-repository", "metadata", "logging"]);
    const key = await desk.key({ scopes: [...scopes] });
    const all = [...ofModel, metadata, logging];
    expect(await outcome(all, `X-API-Key: ${key}\r\nX-Key: wrong\r\n`)).toEqual(nothing);
  }, 60_000);

  it("is taken from who may call, where it is one", async () => {
    await start();
    const key = await desk.key({ scopes: [...scopes] });
    const taken = new Set<string>();
    for (const target of [...ofModel, metadata, logging]) {
      for (const form of forms(target.path)) {
        const statuses = await statusesOf(form, target, `X-API-Key: ${key}\r\n`);
        if (statuses.includes(200)) taken.add(form);
      }
      expect(taken).toContain(target.path);
    }
    // Otherwise the forms would say nothing.
    expect(taken.size).toBeGreaterThan(20);
    expect(answered).toBeGreaterThan(10);
  }, 60_000);
});

describe("another form of a method's path", () => {
  it("leads to no method over gRPC", async () => {
    http = await HttpStand.start();
    const restrictions = new Map([["inference", { key: "x-key", value: "s" }] as const]);
    const grpc = await GrpcStand.start({ restrictions });
    const session = http2.connect(`http://127.0.0.1:${grpc.port}`);
    const path = "/inference.GRPCInferenceService/ModelInfer";
    const frame = grpcFrame(encode("ModelInferRequest", floats([1])));
    const others = [
      path,
      `/${path}`,
      `${path}/`,
      path.toLowerCase(),
      path.replace("/M", "//M"),
      path.replace("ModelInfer", "%4dodelInfer"),
      path.replace("ModelInfer", "./ModelInfer"),
      path.replace("ModelInfer", "Else/ModelInfer"),
      `${path}?x=1`,
      `${path}#x`,
      path.slice(1),
      `http://x${path}`,
    ];
    for (const other of others) {
      const stream = session.request({
        ":method": "POST",
        ":path": other,
        "content-type": "application/grpc",
        te: "trailers",
      });
      stream.on("error", () => {});
      stream.end(frame);
      const [head] = await once(stream, "response");
      expect([other, head["grpc-status"]]).toEqual([other, expect.stringMatching(/^1[24]$/u)]);
      stream.close();
    }
    session.destroy();
    await grpc.stop();
  });
});
