import { Metadata } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { scopes } from "../../auth/scope.ts";
import { auditTrail } from "../../gateway/audit-trail.ts";
import { changeOfMethod, changeOfPath } from "../../gateway/changes.ts";
import { grpcNeeds, httpNeeds } from "../../gateway/policy.ts";
import type { HttpPath } from "../../gateway/api-category.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { AuditLines } from "../helpers/audit-lines.ts";
import type { Answer } from "../helpers/http-client.ts";
import { GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";

let desk: KeyDesk;
let audit: AuditLines;
let stand: HttpStand | GrpcStand | undefined;
beforeEach(async () => {
  desk = await openKeyDesk();
  audit = new AuditLines();
});
afterEach(async () => {
  await stand?.stop();
  stand = undefined;
  desk.close();
});

/** What both stands are started with. So much time passes between two calls that no refusal is one too many. */
function parts() {
  const { access } = desk;
  const { authenticator } = access;
  let time = 0;
  return { access, audit: auditTrail({ log: audit, authenticator, now: () => (time += 1000) }) };
}

async function httpStand(): Promise<HttpStand> {
  const started = await HttpStand.start(parts());
  stand = started;
  return started;
}

async function grpcStand(): Promise<GrpcStand> {
  const started = await GrpcStand.start(parts());
  stand = started;
  return started;
}

function shown(key: string): Metadata {
  const metadata = new Metadata();
  metadata.set("x-api-key", key);
  metadata.set("x-request-id", "r1");
  return metadata;
}

function who(key: string): object {
  return { principal: `key:${key.slice(3, 15)}`, principalTitle: "ci", tenant: "default" };
}

const paths = Object.entries(httpNeeds).map(([pattern, need]) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.entries forgets which keys a table has
  const action = changeOfPath(pattern as HttpPath);
  const path = pattern
    .replace(":model", "batch")
    .replace(":region", "ours")
    .replace(":repository", "r");
  const changes = need === "models" || need === "admin";
  return { path, action, changes };
});
const writingMethods = ["POST", "PUT", "PATCH", "DELETE"];
/** Whose calls change nothing that anybody sees. */
const silent = /\/parts\b/u;

/** True for an answer of a handler, and of no router. */
function isHandled({ status, text }: Answer): boolean {
  return status !== 405 && text !== '{"error":"Not Found"}';
}

describe("changes over HTTP", () => {
  it("have one line each, on every path whose callers may change something", async () => {
    const http = await httpStand();
    const key = await desk.key({ scopes: [...scopes] });
    const told = new Set<string>();
    for (const { path, action, changes } of paths.filter((one) => one.changes)) {
      for (const method of writingMethods) {
        const headers = { "X-API-Key": key, "X-Request-ID": `to ${path}` };
        const answer = await http.ask(method, path, method === "POST" ? "{}" : "", headers);
        const lines = audit.take();
        const expected = isHandled(answer) && !silent.test(path) ? [action] : [];
        expect([method, path, lines.map((line) => line["action"])]).toEqual([
          method,
          path,
          expected,
        ]);
        const subject = /batch|ours/u.exec(path)?.[0];
        const result = expect.stringMatching(answer.status < 300 ? /^OK$/u : /^(?!OK)/u);
        const origin = { via: "http", address: "127.0.0.1", requestId: `to ${path}` };
        for (const line of lines)
          expect(line).toMatchObject({
            ...who(key),
            ...origin,
            ...(subject && { subject }),
            result,
          });
        for (const line of lines) told.add(String(line["action"]));
      }
      await http.ask("GET", path, "", { "X-API-Key": key });
      expect([path, changes, audit.take()]).toEqual([path, true, []]);
    }
    expect(told.size).toBeGreaterThan(6);
  });

  it("have a line when they are refused to a caller who is known, and none for strangers", async () => {
    const http = await httpStand();
    const key = await desk.key({ scopes: ["infer", "read"] });
    const changing = paths.filter(({ action }) => action);
    expect(changing.length).toBeGreaterThan(15);
    for (const { path, action } of changing) {
      const answer = await http.ask("POST", path, "{}", { "X-API-Key": key });
      const refusal = { action, result: "PERMISSION_DENIED", ...who(key) };
      const expected = isHandled(answer) ? [refusal] : [];
      expect([path, audit.take()]).toMatchObject([path, expected]);
      await http.ask("POST", path, "{}", { "X-API-Key": newApiKey().text });
      await http.ask("POST", path, "{}");
      expect([path, audit.take()]).toEqual([path, []]);
    }
  });

  it("are nothing that is only asked", async () => {
    const http = await httpStand();
    const key = await desk.key();
    for (const { path } of paths.filter((one) => !one.changes))
      for (const method of ["GET", "POST"]) await http.ask(method, path, "", { "X-API-Key": key });
    expect(audit.take()).toEqual([]);
  });

  it("say what was asked for, without what is in it", async () => {
    const http = await httpStand();
    const headers = { "X-API-Key": await desk.key({ scopes: [...scopes] }) };
    await http.post("/v2/logging", { log_verbose_level: 2, log_info: false }, headers);
    const parameters = {
      config: '{"platform":"hidden-config"}',
      "file:1/model.onnx": Buffer.from("hidden-file").toString("base64"),
    };
    await http.post("/v2/repository/models/batch/load", { parameters }, headers);
    await http.post("/v2/systemsharedmemory/region/ours/register", {
      key: "/no-such-object",
      byte_size: 4,
    });
    const lines = audit.take();
    expect(lines.map((line) => line["details"])).toEqual([
      { logVerboseLevel: 2, logInfo: false },
      { config: true, files: ["1/model.onnx"] },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/hidden/u);
  });

  it("tell of a key by its id, and never of its secret", async () => {
    const http = await httpStand();
    const key = await desk.key({ scopes: [...scopes] });
    await http.post(`/v2/logging?key=${key}`, {}, { Authorization: `Bearer ${key}` });
    const text = JSON.stringify(audit.take());
    expect(text).toContain(key.slice(3, 15));
    expect(text).not.toContain(key.slice(-43));
  });

  it("are everybody's where nobody is asked for a key", async () => {
    const open = auditTrail({ log: audit, authenticator: undefined });
    const http = await HttpStand.start({ audit: open });
    stand = http;
    await http.post("/v2/logging", {});
    expect(audit.take()).toEqual([
      expect.objectContaining({ principal: "anonymous", result: "OK", address: "127.0.0.1" }),
    ]);
  });

  it("have a line when a restriction keeps them from a caller", async () => {
    const restrictions = new Map([["logging", { key: "X-Key", value: "secret" }] as const]);
    const http = await HttpStand.start({ ...parts(), restrictions });
    stand = http;
    const key = await desk.key({ scopes: ["admin"] });
    await http.post("/v2/logging", {}, { "X-API-Key": key });
    expect(audit.take()).toEqual([
      expect.objectContaining({ action: "log.update", result: "PERMISSION_DENIED", ...who(key) }),
    ]);
  });
});

describe("changes over gRPC", () => {
  const changing = Object.entries(grpcNeeds).filter(
    ([name, need]) => (need === "models" || need === "admin") && !name.endsWith("Status"),
  );
  /** With something in it where there is room for settings. */
  const requests: Readonly<Record<string, object>> = {
    LogSettings: { settings: { log_verbose_level: { uint32Param: 1 } } },
    TraceSetting: { settings: { trace_rate: { value: ["5"] } }, modelName: "echo_INT8" },
    RepositoryModelLoad: { modelName: "echo_INT8" },
    RepositoryModelUnload: { modelName: "echo_INT8" },
  };

  function nameIn(method: string): string {
    return method in requests ? "echo_INT8" : "ours";
  }

  it("have one line each, in every method whose callers may change something", async () => {
    const grpc = await grpcStand();
    const key = await desk.key({ scopes: [...scopes] });
    expect(changing.length).toBeGreaterThan(7);
    for (const [method] of changing) {
      const asked = grpc.ask(method, requests[method] ?? { name: "ours" }, {
        metadata: shown(key),
      });
      const [{ status }] = await Promise.allSettled([asked]);
      const [line, ...more] = audit.take();
      const subject = method === "LogSettings" ? {} : { subject: nameIn(method) };
      const action = changeOfMethod(method);
      const origin = { via: "grpc", address: "127.0.0.1", requestId: "r1" };
      expect([method, line]).toEqual([
        method,
        expect.objectContaining({ ...who(key), action, ...subject, ...origin }),
      ]);
      expect([method, line?.["result"] === "OK"]).toEqual([method, status === "fulfilled"]);
      expect(more).toEqual([]);
    }
  });

  it("have a line when they are refused to a caller who is known, and none for strangers", async () => {
    const grpc = await grpcStand();
    const key = await desk.key({ scopes: ["infer"] });
    const other = await desk.key({ scopes: ["models"], models: ["else"] });
    for (const [method] of changing) {
      const request = requests[method] ?? { name: "ours" };
      const asked = grpc.ask(method, request, { metadata: shown(key) });
      await expect(asked).rejects.toThrow("PERMISSION_DENIED");
      expect([method, audit.take()]).toEqual([
        method,
        [expect.objectContaining({ ...who(key), result: "PERMISSION_DENIED" })],
      ]);
      await expect(grpc.ask(method, request)).rejects.toThrow("UNAUTHENTICATED");
      expect([method, audit.take()]).toEqual([method, []]);
    }
    const load = requests["RepositoryModelLoad"] ?? {};
    const asked = grpc.ask("RepositoryModelLoad", load, { metadata: shown(other) });
    await expect(asked).rejects.toThrow("for other models only");
    expect(audit.take()).toEqual([
      expect.objectContaining({ ...who(other), subject: "echo_INT8", result: "PERMISSION_DENIED" }),
    ]);
  });

  it("are nothing that is only asked", async () => {
    const grpc = await grpcStand();
    const metadata = shown(await desk.key({ scopes: [...scopes] }));
    const statuses = ["SystemSharedMemoryStatus", "CudaSharedMemoryStatus"];
    for (const method of ["LogSettings", "TraceSetting", "ServerMetadata", ...statuses])
      await Promise.allSettled([grpc.ask(method, {}, { metadata })]);
    expect(audit.take()).toEqual([]);
  });

  it("have a line when a restriction keeps them from a caller", async () => {
    const restrictions = new Map([["logging", { key: "X-Key", value: "secret" }] as const]);
    const grpc = await GrpcStand.start({ ...parts(), restrictions });
    stand = grpc;
    const key = await desk.key({ scopes: ["admin"] });
    const asked = grpc.ask("LogSettings", requests["LogSettings"] ?? {}, { metadata: shown(key) });
    await expect(asked).rejects.toThrow("restricted");
    expect(audit.take()).toEqual([
      expect.objectContaining({ action: "log.update", result: "PERMISSION_DENIED", ...who(key) }),
    ]);
  });
});

describe("auditTrail", () => {
  it("bounds the lines of refusals, and tells how many were left out", () => {
    let now = 0;
    const trail = auditTrail({ log: audit, authenticator: undefined, now: () => now });
    const refusal = new InferenceError(StatusCode.PermissionDenied, "no");
    const change = (cause?: unknown): void => {
      const credentials = { authorization: undefined, apiKey: undefined };
      const call = { action: "log.update", subject: "", via: "http", credentials } as const;
      trail.begin(call).end(undefined, cause);
    };
    for (let i = 0; i < 1000; i++) change(refusal);
    expect(audit.take()).toHaveLength(20);
    for (let i = 0; i < 100; i++) change();
    expect(audit.take()).toHaveLength(100);
    now = 1000;
    change(refusal);
    change(refusal);
    expect(audit.take().map((line) => line["details"])).toEqual([
      { refusalsLeftOut: 980 },
      undefined,
    ]);
  });
});
